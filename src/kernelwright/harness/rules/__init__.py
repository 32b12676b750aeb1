"""What a candidate may not do, held on its text and on its binary."""
