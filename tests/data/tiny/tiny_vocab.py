"""Two vocabularies of 288 tokens for the tiny models: byte-level BPE (GPT-2's kind) and SentencePiece with byte fallback.

Both cover every byte, so any text can be tokenised; the merges and pieces make words of common English letter pairs.
"""
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
SIZE = 288
PAIRS = "t h|th e|i n|a n|o n|e r|r e|a t|e n|o r|s t|i s|a l|a r|o u|i t|n d|in g|an d|e s"
CHATML = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
TURNS = ("{{ bos_token }}{% for m in messages %}[{{ m['role'] }}] {{ m['content'] | trim }}{{ eos_token }}{% endfor %}"
         "{% if add_generation_prompt %}[assistant]{% endif %}")


def byte_letters():
    """GPT-2's alphabet: printable Latin-1 bytes stand for themselves, the others for the code points from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    letters = {b: chr(b) for b in printable}
    letters.update({b: chr(256 + i) for i, b in enumerate(others)})
    return [letters[b] for b in range(256)]


def write_bpe(writer, pre):
    space = byte_letters()[32]
    merges = PAIRS.split("|") + [f"{space} t", f"{space}t h", f"{space} a", f"{space} s", f"{space}t he", f"{space} w",
                                 f"{space} o", f"{space} in"]
    tokens = byte_letters() + [m.replace(" ", "") for m in merges] + ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]
    assert len(tokens) == len(set(tokens)) == SIZE
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([NORMAL] * (SIZE - 4) + [CONTROL] * 4)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(SIZE - 4)
    writer.add_eos_token_id(SIZE - 2)
    writer.add_pad_token_id(SIZE - 1)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHATML)


def write_spm(writer, add_space_prefix):
    pieces = ["\u2581", *"etaoinsrhld", "th", "in", "an", "er", "on", "the", "ing", "and",
              "\u2581t", "\u2581th", "\u2581the", "\u2581a", "\u2581s", "\u2581o", "\u2581i", "\u2581in"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + pieces + ["<|endoftext|>"]
    assert len(tokens) == len(set(tokens)) == SIZE
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    # longer pieces win: merging goes by the highest score
    writer.add_token_scores([0.0] * 259 + [float(len(p)) * 4 - 40 - i / 64 for i, p in enumerate(pieces)] + [0.0])
    writer.add_token_types([UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(pieces) + [CONTROL])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(add_space_prefix)
    writer.add_chat_template(TURNS)
