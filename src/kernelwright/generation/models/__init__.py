"""Ways to reach a language model, one Protocol."""
