"""How the house is lived in, as numbers: ``make house``. Nothing here is a test; the numbers are compared before and after."""
