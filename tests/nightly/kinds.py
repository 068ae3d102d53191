"""All that a search must come to: a name that is missing here is not missed, one too many is."""

from __future__ import annotations

from simspec.serving.request import Outcome
from tests.nightly.coverage import EVENTS

OPTIONS = """
1 drafters
2 drafters
3 drafters
a crowd
a drafter priced apart
a drafter's device
a horizon
a link to the drafter
a look-up
a price for drafting nothing
a queue limit
all accepted with probability 0
all accepted with probability 1
an intermediate that adds
arrivals that meet
bursts
chunked prompts, alone
chunked prompts, mixed
closed loop
closed loop of thinkers
device prices
drafter's memory limited
drafters' devices
failures by chance
graphs by rows
graphs by tokens
intermediates' memory limited
measured prices
no queue
nothing beyond graphs
on failure lost
on failure restart
on failure resume
one engine
one intermediate
one slot
open loop
outages listed
overhead of its own
patience
plain decoding
policy ByRows
policy ByRowsAndContext
policy ExactMarginal by row
policy Fixed
policy G4 by row
policy Goodput
policy Joint
policy Joint in full
policy LibraSpec by row
policy OffAbove
policy Routed
policy Static by row
policy Switching
prefill apart
regular arrivals
reserved, recompute
reserved, swap
routing least-loaded
routing round-robin
routing session-affine
sessions
several replicas
several slots
several steps at once
source LevelRates
source Mean
source Rates
source Recorded
source Recorded without confidences
source RecordedChain
swaps take time
target's memory limited
tick prices
transfers take time
two intermediates
unlike replicas
used, recompute
used, swap
whole prompts, alone
whole prompts, mixed
"""
OUTCOMES = tuple(f"a request {outcome.name.lower()}" for outcome in Outcome)
KINDS = (*OPTIONS.strip().splitlines(), *EVENTS, *OUTCOMES)
