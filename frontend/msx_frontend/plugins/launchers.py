"""A `Launcher` and its clusters: what starts worker groups elsewhere, and says what room there is."""

from msx_frontend.devices.lease import Lease
from msx_frontend.devices.nodes import GroupPlacement, Share, in_drivers_order
from msx_frontend.environments.build import is_venv
from msx_frontend.metrics.observer import Figure
from msx_frontend.resources.claim_state import ClaimState
from msx_frontend.resources.shortage import Shortage
from msx_frontend.resources.starts import Sibling
from msx_frontend.resources.supply import GroupClaim, Supply, UnhealthyDevice, VersionSupply
from msx_frontend.workers.launcher import (
    ByteStream,
    ExitStatus,
    GroupSpec,
    LaunchedRank,
    Launcher,
    RankSpec,
    RankStatus,
)
from msx_frontend.workers.rank_group import RankGroup
from msx_frontend.workers.workplace import ClusterSettings, ClusterView, OpenCluster, Workplace

__all__ = [
    "ByteStream",
    "ClaimState",
    "ClusterSettings",
    "ClusterView",
    "ExitStatus",
    "Figure",
    "GroupClaim",
    "GroupPlacement",
    "GroupSpec",
    "LaunchedRank",
    "Launcher",
    "Lease",
    "OpenCluster",
    "RankGroup",
    "RankSpec",
    "RankStatus",
    "Share",
    "Shortage",
    "Sibling",
    "Supply",
    "UnhealthyDevice",
    "VersionSupply",
    "Workplace",
    "in_drivers_order",
    "is_venv",
]
