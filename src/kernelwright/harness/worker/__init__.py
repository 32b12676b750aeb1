"""What runs in the harness's children, beside candidates: knows no memory, no board, no model."""
