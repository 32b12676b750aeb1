"""The board's rules: who may send what, who may see what. The ways in are :mod:`.api` and :mod:`.pages`."""

import hmac
import math
import time
from collections.abc import Callable, Mapping

from kernelwright.board_server.evaluator import Evaluator
from kernelwright.board_server.records import HOUR_S, Draft, Entry, Listing, Rules, Submission, User
from kernelwright.board_server.requests import Denied, NewSubmission
from kernelwright.board_server.standing import Step, rank_history
from kernelwright.board_server.store import Store
from kernelwright.board_server.text import plain
from kernelwright.core.candidate import parse_template
from kernelwright.core.configuration import Configuration
from kernelwright.core.errors import UserError
from kernelwright.leaderboard.base import Mode


class Service:
    """One server's boards: every problem on every device."""

    def __init__(
        self,
        store: Store,
        listings: Mapping[str, Listing],
        evaluators: Mapping[str, Evaluator],
        rules: Rules,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.listings = listings
        self.evaluators = evaluators
        self.rules = rules
        self._clock = clock

    # -- what there is --------------------------------------------------------------------------------

    def listing(self, problem: str) -> Listing:
        """Raises Denied 404."""
        if problem not in self.listings:
            raise Denied(404, f"there is no board {problem!r}: there are {', '.join(self.listings)}")
        return self.listings[problem]

    def device(self, name: str) -> str:
        """The named device, by default the first. Raises Denied 404."""
        if not name:
            return next(iter(self.evaluators))
        if name not in self.evaluators:
            raise Denied(404, f"there is no device {name!r}: there are {', '.join(self.evaluators)}")
        return name

    def model(self, device: str) -> str:
        """What a device is."""
        facts = self.evaluators[device].facts
        return facts.model if facts else ""

    def over(self, problem: str) -> bool:
        """Whether its deadline has passed."""
        deadline = self.store.deadline(problem)
        return deadline is not None and self._clock() >= deadline

    # -- who --------------------------------------------------------------------------------------------

    def user(self, token: str | None) -> User:
        """Raises Denied 401."""
        user = self.store.user_of(token) if token else None
        if user is None:
            raise Denied(401, "a token of this board is needed: ask who serves it for one")
        return user

    # -- submitting -----------------------------------------------------------------------------------

    def submit(self, user: User, problem: str, sent: NewSubmission) -> tuple[Submission, bool]:
        """The submission, and whether it is new: the same tag again is the same submission.

        There is no way out of this method between its look and its write, so that requests at once see each other.
        Raises Denied.
        """
        draft = self._draft(user, problem, sent)
        if known := self.store.by_tag(draft):
            return self._same(known, draft), False
        if self.over(problem):
            raise Denied(403, "the deadline has passed: nothing more is taken")
        if not user.seeder:
            self._hold_to_limit(user, draft.mode)
        kept = self.store.add(draft)
        self.evaluators[draft.device].wake()
        return kept, True

    def _draft(self, user: User, problem: str, sent: NewSubmission) -> Draft:
        self.listing(problem)
        if sent.entry and not user.seeder:
            raise Denied(403, "entry: this token has one entry, which needs no name")
        try:
            template = parse_template(sent.source, sent.file)
        except UserError as error:
            raise Denied(422, f"source: {error}") from None
        return Draft(
            user=user.name,
            problem=problem,
            device=self.device(sent.device),
            mode=sent.mode,
            tag=sent.tag,
            source=template.source,
            configuration=Configuration(sent.configuration).key,
            file=sent.file,
            entry=plain(sent.entry, 60),
        )

    def _same(self, known: Submission, draft: Draft) -> Submission:
        if (known.draft.source, known.draft.configuration) != (draft.source, draft.configuration):
            raise Denied(409, f"tag: {draft.tag} stands for another source or configuration already")
        return known

    def _hold_to_limit(self, user: User, mode: Mode) -> None:
        now, most = self._clock(), self.rules.per_hour(mode)
        if not most:
            raise Denied(403, f"{mode} submissions are not taken here")
        sent = self.store.sent_since(user.name, mode, now - HOUR_S)
        if len(sent) < most:
            return
        retry = math.ceil(sent[-most] + HOUR_S - now)
        raise Denied(429, f"{most} {mode} submissions an hour are allowed: again in {retry:.0f} s", retry)

    # -- looking --------------------------------------------------------------------------------------

    def find(self, user: User, problem: str, device: str, tag: str, mode: Mode) -> Submission:
        """The own submission with a tag. Raises Denied 404."""
        self.listing(problem)
        draft = Draft(user.name, problem, self.device(device), mode, tag, "")
        found = self.store.by_tag(draft)
        if found is None:
            raise Denied(404, "you have no submission with this tag and mode")
        return found

    def look(self, submission: str, user: User | None, view_key: str = "") -> tuple[Submission, bool]:
        """A submission, and whether the asker may read why it ended as it did (a compiler's words quote the source).

        Others see only what stands in the rank table; to them anything else does not exist. Raises Denied 404.
        """
        found = self.store.by_id(submission)
        own = found is not None and (
            (user is not None and found.draft.user == user.name)
            or hmac.compare_digest(view_key.encode(errors="replace"), found.view_key.encode())
        )
        if found is None or not (own or found.counts):
            raise Denied(404, "there is no such submission, or it is not yours")
        return found, own

    def source(self, submission: str, user: User) -> Submission:
        """A submission whose source the user may read: the own always, others' after the deadline. Raises Denied."""
        found, own = self.look(submission, user)
        if not own and not self.over(found.draft.problem):
            raise Denied(403, "sources of others are open after the deadline")
        return found

    def entries(self, problem: str, device: str, *, every: bool = False) -> list[Entry]:
        """The rank table."""
        return self.store.entries(self.listing(problem).problem.name, self.device(device), every=every)

    def history(self, problem: str, device: str, top: int) -> list[Step]:
        """How those who lead now came there."""
        labels = [entry.label for entry in self.entries(problem, device)[:top]]
        return rank_history(self.store.in_order(problem, self.device(device)), labels)
