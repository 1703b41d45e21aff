-- What the last version that knew no revisions wrote: `sqlite3 journal.db .dump` of a journal with one run.
BEGIN TRANSACTION;
CREATE TABLE events (
	run VARCHAR NOT NULL, 
	number INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	PRIMARY KEY (run, number)
);
INSERT INTO "events" VALUES('r20261101-120000-a1b2',1,'{"event": "Ticked", "at": 1.0}','15166e5ab50029d6c665a666f6aa301f0e53459461239a89f0ea57a8b6f0bb95');
INSERT INTO "events" VALUES('r20261101-120000-a1b2',2,'{"event": "Ticked", "at": 2.0}','7ad2016a7c2ffa5fc137c918a5058577192806f9dceb937c2a7b703df87f1ca2');
CREATE TABLE leases (
	cluster VARCHAR NOT NULL, 
	run VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	heartbeat FLOAT NOT NULL, 
	PRIMARY KEY (cluster)
);
CREATE TABLE notes (
	number INTEGER NOT NULL, 
	cluster VARCHAR NOT NULL, 
	at FLOAT NOT NULL, 
	who VARCHAR NOT NULL, 
	text VARCHAR NOT NULL, 
	PRIMARY KEY (number)
);
CREATE TABLE requests (
	number INTEGER NOT NULL, 
	run VARCHAR NOT NULL, 
	word VARCHAR NOT NULL, 
	who VARCHAR NOT NULL, 
	reason VARCHAR NOT NULL, 
	revert VARCHAR NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (number)
);
CREATE TABLE runs (
	number INTEGER NOT NULL, 
	run VARCHAR NOT NULL, 
	cluster VARCHAR NOT NULL, 
	goal VARCHAR NOT NULL, 
	"order" TEXT NOT NULL, 
	counter INTEGER NOT NULL, 
	"plan" BLOB NOT NULL, 
	at FLOAT NOT NULL, 
	who VARCHAR NOT NULL, 
	reason VARCHAR NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (run)
);
INSERT INTO "runs" VALUES(1,'r20261101-120000-a1b2','rno','apply','{}',3,X'706C616E',1.0,'ops@desk','OPS-1881');
CREATE INDEX ix_requests_run ON requests (run);
COMMIT;
