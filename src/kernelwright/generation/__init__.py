"""Who proposes structure: the catalogue now, language models on top of the same Protocol."""
