"""What is kept before it is acknowledged: numbered frames in files, snapshots, and a cipher for both."""

from querycloak.service.wal.cipher import Cipher
from querycloak.service.wal.journal import Journal
from querycloak.service.wal.snapshots import Snapshots

__all__ = ["Cipher", "Journal", "Snapshots"]
