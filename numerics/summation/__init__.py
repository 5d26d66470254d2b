"""Summation methods: certified sums of an exp-series over a stretch of distances."""
