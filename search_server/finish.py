"""From the fused order to the hits that are shown: boosts, named papers, ties, versions, passages, reasons."""

from __future__ import annotations

from typing import Any

from search_server import boosts, fusion
from search_server.answer import hit_rows, more_passages, to_hit
from search_server.explain import explain_answer, explain_hit, words_of_hits
from search_server.fusion import Fused
from search_server.highlights import highlights
from search_server.lists import Lists
from search_server.versions import family
from search_server.work import Work
from sql.files import queries

_MORE_ROWS = 4  # papers may have gone since the word index was in step, and versions of one paper are shown once


class Finisher:
    """Makes hits; reads what is shown of them."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists
        self._pool = lists.pool

    async def hits(self, work: Work, fused: list[Fused], named: dict[int, str]) -> list[dict[str, Any]]:
        """Return the hits of the answer, ranked from 1."""
        params = work.params
        fused = await self._finish(work, fused, named)
        rows = await hit_rows(self._pool, fused[: params.k + _MORE_ROWS])
        shown: list[Fused] = []
        families: set[str] = set()
        for row in fused:
            found = rows.get(row.paper_pk)
            if found is None:
                continue
            key = found["paper_id"] if found["is_prefixed"] else family(found["paper_id"])
            if key not in families:
                families.add(key)
                shown.append(row)
        shown = shown[: params.k]
        hits = [{**to_hit(row, rows[row.paper_pk]), "rank": rank} for rank, row in enumerate(shown, 1)]
        if params.passages > 1:
            await self._add_passages(work, shown, hits)
        if params.highlights or params.explain or params.passages > 1:
            self._add_highlights(work, hits)
        if params.explain:
            await self._explain(work, shown, hits)
        return hits

    async def explain(self, work: Work) -> dict[str, Any]:
        """Return what explains the answer as a whole."""
        pks = list({entry.paper_pk for rows in work.lists.values() for entry in rows[:20]})
        state = self._lists.state
        return explain_answer(
            fusion=work.fusion, weights=work.weights, per_list=work.per_list, lists=work.lists,
            names=await self._names(pks), asked=work.asked,
            settings={"ef_search": state.scan.ef_search, "exact_below": state.tuned.scan.exact_below},
        )  # fmt: skip

    async def _explain(self, work: Work, shown: list[Fused], hits: list[dict[str, Any]]) -> None:
        asked = work.asked
        words: dict[int, list[tuple[str, float]]] = {}
        if asked is not None and asked.words:
            words = await self._lists.ask_index(work, lambda reader: words_of_hits(reader, asked, shown)) or {}
        for place, (row, hit) in enumerate(zip(shown, hits, strict=True), 1):
            hit["explain"] = explain_hit(row, place, words.get(row.paper_pk, ()))

    async def _add_passages(self, work: Work, shown: list[Fused], hits: list[dict[str, Any]]) -> None:
        """More passages of each paper, the best for the question first."""
        asked, n = work.asked, work.params.passages
        papers = [row.paper_pk for row in shown]
        by_paper: dict[int, list[int]] = {row.paper_pk: [row.passage_id] if row.passage_id else [] for row in shown}
        if asked is not None and asked.words:
            for hit in await self._lists.ask_index(work, lambda reader: reader.score_papers(asked, papers)) or ():
                by_paper[hit.paper_pk].append(hit.passage_id)
        for entry in work.lists.get("passage_vector", ()):
            if entry.paper_pk in by_paper:
                by_paper[entry.paper_pk].insert(min(2, len(by_paper[entry.paper_pk])), entry.passage_id)
        wanted = {pk: list(dict.fromkeys(ids))[:n] for pk, ids in by_paper.items()}
        found = await more_passages(self._pool, [p for ids in wanted.values() for p in ids])
        for row, hit in zip(shown, hits, strict=True):
            hit["passages"] = [found[p] for p in wanted[row.paper_pk] if p in found]

    @staticmethod
    def _add_highlights(work: Work, hits: list[dict[str, Any]]) -> None:
        stems = [word for word, _ in work.asked.words] if work.asked else []
        for hit in hits:
            for passage in [hit["passage"], *hit.get("passages", ())]:
                if passage is not None:
                    passage["highlights"] = highlights(passage["text"], stems)

    async def _finish(self, work: Work, fused: list[Fused], named: dict[int, str]) -> list[Fused]:
        """Boosts, papers that the question names, and ties by paper id."""
        params = work.params
        if params.boosts and fused:
            factors = await boosts.factors(self._pool, [row.paper_pk for row in fused], params.boosts)
            fused = fusion.apply_boosts(fused, factors)
        fused = fusion.put_first(fused, named)
        edge = params.k + _MORE_ROWS
        if len(fused) > edge:
            last = fused[edge - 1].score
            edge += next((i for i, row in enumerate(fused[edge:]) if row.score < last), len(fused) - edge)
        fused = fused[: min(edge, params.k + 200)]
        await self._name(fused)
        return fusion.order(fused)

    async def _name(self, fused: list[Fused]) -> None:
        """Learn the ids of papers whose score another one shares: they order equal scores."""
        scores = [row.score for row in fused]
        equal = [row for row in fused if scores.count(row.score) > 1] if len(set(scores)) != len(scores) else []
        if equal:
            names = await self._names([row.paper_pk for row in equal])
            for row in equal:
                row.paper_id = names.get(row.paper_pk, "")

    async def _names(self, pks: list[int]) -> dict[int, str]:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(queries("search")["paper_ids"], {"papers": pks})
            return {int(pk): str(paper_id) for pk, paper_id in await cursor.fetchall()}
