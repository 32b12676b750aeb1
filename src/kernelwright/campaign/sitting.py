"""Opens a campaign, new or from the memory, runs it for one sitting and closes everything again."""
