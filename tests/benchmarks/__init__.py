"""The tests of the benchmarks' own parts."""
