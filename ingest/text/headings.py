"""What kind of section a heading opens, told by its words in the languages that papers are written in."""

from __future__ import annotations

import re

_NUMBER = re.compile(
    r"^\s*(?:(?:section|chapter|appendix|kapitel|chapitre|anhang|annexe)\s+)?"
    r"(?:\d{1,2}(?:\.\d{1,2}){0,3}|[IVX]{1,5}|[A-Z](?:\.\d{1,2}){0,3})?[.:)]?\s*[—–|-]?\s+",
    re.IGNORECASE,
)
_SPACED = re.compile(r"^\s*(?:\w ){4,}\w\s*$")
_APPENDIX = re.compile(
    r"^\s*(?:(?i:appendi(?:x|ces)|supplement(?:ary|al)?\b(?!.*(?:section|materials? and methods))|anhang|annexes?|apéndice|附录)"
    r"|(?:[A-Z](?:\.\d+)+\.?|[A-HJ-UWYZ](?:[.:])|[B-HJ-Z])\s+[A-ZÀ-Þ])"  # "A Study of …" is a title, "A. Proofs" is none
)

# The first pattern that stands in the heading decides; order matters ("results and discussion" is results).
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (
            "references",
            (
                r"^(?:references?(?: and notes| cited)?|bibliograph(?:y|ie|ia)|literature(?: cited)?|works cited|"
                r"références(?: bibliographiques)?|literatur(?:verzeichnis)?|referencias(?: bibliográficas)?|referências|"
                r"bibliografía|riferimenti(?: bibliografici)?|参考文献|참고문헌|список литературы|литература|المراجع)\s*[:.]?$"
            ),
        ),
        (
            "abstract",
            (
                r"^(?:(?:graphical |structured |extended )?abstract|summary|synopsis|résumé|zusammenfassung|resumen|resumo|"
                r"sommario|摘要|要旨|초록|аннотация|الملخص)\s*[:.]?$"
            ),
        ),
        (
            "acknowledgements",
            r"^(?:acknowledge?ments?|acknowledgements? and .*|remerciements|danksagung|agradecimientos|ringraziamenti|致谢)\s*[:.]?$",
        ),
        (
            "introduction",
            r"^(?:introduction|background|einleitung|einführung|introducción|introdução|introduzione|引言|绪论|введение|はじめに)\b",
        ),
        ("conclusion", r"\b(?:conclusions?|concluding|conclusiones|conclusão|fazit|schluss|结论|заключение)\b"),
        (
            "method",
            (
                r"\b(?:methods?|methodology|materials|experimental (?:procedures|section|design|set-?up)|approach|model(?:s|ling)?|"
                r"architecture|algorithms?|méthodes?|methoden|métodos?|metodi|implementation|star methods)\b|^方法"
            ),
        ),
        (
            "results",
            r"\b(?:results?|experiments?|evaluation|findings|ergebnisse|résultats|resultados|risultati|expérimentations?)\b|^(?:结果|实验)",
        ),
        ("discussion", r"\b(?:discussion|limitations|diskussion|discusión|discussão|讨论)\b"),
    )
)


_AVAILABILITY = re.compile(r"\bavailability\b|\bcompeting interests?\b|\bethics\b", re.IGNORECASE)
_WORDS = re.compile(
    r"^(?:(?:general |experimental |overall |main )?(?:introduction|background|results?|discussions?|conclusions?|methods?|limitations?)"
    r"(?:(?:,| and| &|, and) (?:background|motivation|related works?|discussions?|conclusions?|materials?|methods?|analysis|evaluation|"
    r"future (?:works?|directions?|research)|outlook|perspectives?|limitations?|overview|contributions?|implications?))*|"
    r"(?:materials?|patients|subjects|participants|data)(?:,? and| &)? methods?|methodology|experimental (?:procedures|section)|experiments?|evaluation|"
    r"related works?|previous work|future work|concluding remarks|summary and .*|"
    r"(?:data|code|software)(?: and (?:code|data|materials?|software))? availability(?: statement)?|availability of .*|author(?:s[’']?)? contributions?|"
    r"(?:competing|conflicts?(?: of)?) interests?|funding(?: statement)?|ethics(?: statement| approval.*)?|ethical considerations|broader impacts?(?: statement)?|"
    r"supplement(?:ary|al) (?:materials?|information|data)|supporting information|additional (?:information|files?)|abbreviations|appendi(?:x|ces)|"
    r"author (?:summary|information)|key(?: ?words| points)|index terms|highlights|significance(?: statement)?|contents|table of contents|"
    r"einleitung|grundlagen|ergebnisse|diskussion|fazit|methoden|méthodes?|résultats|introducción|métodos|resultados|discusión|conclusiones|"
    r"materiales y métodos|introdução|métodos|discussão|conclusão|引言|结论|方法|结果|讨论|实验)\s*[:.]?$",
    re.IGNORECASE,
)


def is_section_word(title: str) -> bool:
    """Whether a heading consists of nothing but the usual words for a section."""
    bare = _bare(title)
    return bool(_WORDS.match(bare)) or any(pattern.search(bare) for _, pattern in _KINDS[:3])


def _bare(title: str) -> str:
    if _SPACED.match(title):
        return title.replace(" ", "")  # "A B S T R A C T"
    return _NUMBER.sub("", title + " ").strip() or title.strip()


def section_kind(title: str) -> str:
    """Return the kind of the section under a heading; "other" where its words tell none."""
    bare = _bare(title)
    for kind, pattern in _KINDS[:3]:
        if pattern.search(bare):
            return kind
    if _APPENDIX.match(title) and not (_WORDS.match(bare) and not title.lower().startswith(("app", "supp"))):
        return "appendix"
    if _AVAILABILITY.search(bare):
        return "other"
    for kind, pattern in _KINDS[3:]:
        if pattern.search(bare):
            return kind
    return "other"
