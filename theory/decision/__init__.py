"""The decision on a series: the parameters split, oscillations averaged, tails compared."""
