"""What is asked of a run, as data: presets, measurements, configurations, plans. No torch."""
