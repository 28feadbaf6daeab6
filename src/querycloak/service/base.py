"""What every kind of service has: its secret, its profiles, and those who are shown what leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from querycloak.errors import UsageError
from querycloak.keys import Secret, derive
from querycloak.service.settings import ServiceSettings, Setup
from querycloak.service.stream import Output


class Base:
    """The folder and settings of a service, and who listens to it."""

    reproducible = False

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.settings: ServiceSettings = setup.settings
        self.folder: Path = self.settings.folder
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._listeners: list[Callable[[], None]] = []
        self._seen: list[Callable[[Output], None]] = []

    @property
    def parked(self) -> tuple[int, ...]:
        """The lanes that are this service's and cannot be loaded; one with a single journal has none."""
        return ()

    def _secret(self) -> bytes:
        seed, file = self.setup.seed, self.settings.secret_file
        if seed is not None and file:
            raise UsageError("a seed and `secret_file` exclude each other", hint="give one of them")
        self.reproducible = seed is not None
        if seed is not None:
            secret = Secret.from_seed(seed)
        else:
            secret = Secret.from_file(Path(file)) if file else Secret.load_or_create(self.folder / "secret")
        return derive(secret.value, "service")

    def _profiles_url(self) -> str:
        url = self.settings.profiles
        return f"sqlite:///{self.folder / 'profiles.sqlite'}" if url == "sqlite" else url

    def listen(self, told: Callable[[], None]) -> None:
        """Be told, from the thread that applies records, whenever some were released."""
        self._listeners.append(told)

    def see(self, told: Callable[[Output], None]) -> None:
        """Be shown, in the thread that applies records, all that leaves."""
        self._seen.append(told)

    def _saw(self, output: Output) -> None:
        for told in self._seen:
            told(output)
        for listener in self._listeners:
            listener()
