"""Max-margin rankers on public data: risk bounds beside test losses."""
