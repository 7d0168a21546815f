"""The read path: question → anchors → spreading activation → rank → trace."""
