"""The structure of the code in numbers: ``make house``.

Nothing here is a test; the numbers are compared before and after a change.
"""
