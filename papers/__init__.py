"""Studies of the five papers: what they measure, the stored results, and the pages made from them."""
