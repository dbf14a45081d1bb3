"""The tokenizer of a GGUF file as the files of a Hugging Face folder: tokenizer.json and what belongs to it.

Two kinds: byte-level BPE (`gpt2`), whose merges the file holds; and SentencePiece BPE (`llama`), whose merges follow from the
pieces' scores: of two neighbours the pair is joined first whose joined piece has the highest score.
"""

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # the file's token types
QWEN_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CLASSES = {"smollm": "GPT2Tokenizer", "qwen2": "Qwen2Tokenizer", "default": "GemmaTokenizer"}


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def pre_tokenizer(name):
    """The splitting before BPE, by the name that the file gives it."""
    if name == "smollm":
        return {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level(True)]}
    if name == "qwen2":
        split = {"type": "Split", "pattern": {"Regex": QWEN_SPLIT}, "behavior": "Isolated", "invert": False}
        return {"type": "Sequence", "pretokenizers": [split, byte_level(False)]}
    raise ValueError(f"the pre-tokenizer {name} is not known here")


def special_ids(source):
    """The ids of begin, end and padding that the file names, under the names of config.json."""
    keys = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}
    found = {name: source.get(f"tokenizer.ggml.{key}_token_id") for name, key in keys.items()}
    return {name: int(value) for name, value in found.items() if value is not None}


def added_tokens(pieces, types):
    return [{"id": i, "content": piece, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": types[i] in (CONTROL, UNKNOWN)}
            for i, piece in enumerate(pieces) if types[i] in (CONTROL, USER_DEFINED, UNKNOWN)]


def bpe_model(vocab, merges, **more):
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": merges}
    model.update(more)
    return model


def byte_level_tokenizer(source, vocab):
    merges = source.need("tokenizer.ggml.merges")
    name = source.need("tokenizer.ggml.pre")
    return {"normalizer": {"type": "NFC"} if name == "qwen2" else None, "pre_tokenizer": pre_tokenizer(name),
            "post_processor": byte_level(False), "decoder": byte_level(True), "model": bpe_model(vocab, merges)}


def merges_from_scores(pieces, types, scores):
    """All ways to put a piece together from two others, the best pieces first."""
    known = {piece: i for i, piece in enumerate(pieces) if types[i] in (NORMAL, USER_DEFINED)}
    order = sorted((i for i in known.values() if types[i] == NORMAL), key=lambda i: (-scores[i], i))
    merges = []
    for i in order:
        piece = pieces[i]
        splits = [(piece[:k], piece[k:]) for k in range(1, len(piece)) if piece[:k] in known and piece[k:] in known]
        merges += sorted(splits, key=lambda s: (known[s[0]], known[s[1]]))
    return [list(pair) for pair in merges]


def sentencepiece_tokenizer(source, vocab, pieces, types):
    merges = merges_from_scores(pieces, types, source.need("tokenizer.ggml.scores"))
    unknown = next((piece for i, piece in enumerate(pieces) if types[i] == UNKNOWN), "<unk>")
    space = "▁"
    decoders = [{"type": "Replace", "pattern": {"String": space}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    tokenizer = {"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": space},
                 "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
                                   "invert": False},
                 "post_processor": None, "decoder": {"type": "Sequence", "decoders": decoders},
                 "model": bpe_model(vocab, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)}
    if source.get("tokenizer.ggml.add_bos_token", False):
        tokenizer["post_processor"] = bos_template(source, pieces)
    return tokenizer


def bos_template(source, pieces):
    bos = int(source.need("tokenizer.ggml.bos_token_id"))
    token = pieces[bos]
    special, first, second = ({"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                              {"Sequence": {"id": "B", "type_id": 1}})
    return {"type": "TemplateProcessing", "single": [special, first], "pair": [special, first, special, second],
            "special_tokens": {token: {"id": token, "ids": [bos], "tokens": [token]}}}


def files(source):
    """-> {file name: content}"""
    pieces = source.need("tokenizer.ggml.tokens")
    types = [int(t) for t in source.need("tokenizer.ggml.token_type")]
    vocab = {piece: i for i, piece in enumerate(pieces)}
    kind = source.need("tokenizer.ggml.model")
    if kind == "gpt2":
        body = byte_level_tokenizer(source, vocab)
    elif kind == "llama":
        body = sentencepiece_tokenizer(source, vocab, pieces, types)
    else:
        raise ValueError(f"the tokenizer {kind} is not known here")
    added = added_tokens(pieces, types)
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, **body}
    config = {"tokenizer_class": CLASSES[source.get("tokenizer.ggml.pre", "default")], "clean_up_tokenization_spaces": False,
              "add_bos_token": bool(source.get("tokenizer.ggml.add_bos_token", False)),
              "model_max_length": int(source.need("{arch}.context_length"))}
    for name, token in special_ids(source).items():
        config[name[:-3]] = pieces[token]
    unknown = source.get("tokenizer.ggml.unknown_token_id")
    if unknown is not None:
        config["unk_token"] = pieces[int(unknown)]
    template = source.get("tokenizer.chat_template")
    if template:
        config["chat_template"] = template
    specials = {name: config[name] for name in ("bos_token", "eos_token", "pad_token", "unk_token") if name in config}
    return {"tokenizer.json": tokenizer, "tokenizer_config.json": config, "special_tokens_map.json": specials}
