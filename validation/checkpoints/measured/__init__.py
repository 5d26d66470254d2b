"""What is measured on a model folder with a text: fields, windows, certificates, losses."""
