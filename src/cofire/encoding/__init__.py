"""From a message to what the store holds: normalised text, terms, concepts, times, segments."""
