"""Pages of HTML: a study, an audit, the gallery."""
