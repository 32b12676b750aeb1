"""The loop: policy, scheduler, budget, resume. The only writer of the memory."""
