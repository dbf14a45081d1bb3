/* pretok_list.h - one row for each family of pre-tokenizers: ROW(names, flags, patterns...).
 *
 * `names` are the values of tokenizer.ggml.pre, separated by spaces. The patterns (at most MICA_PRETOK_STAGES) run one after
 * the other, each over the pieces that the one before left: a match is a piece and so is what lies between two matches. They
 * are the patterns of the models' own tokenizer.json files, in PCRE2 syntax, with two changes that do not alter the matches:
 * \s is spelt out (PCRE2's includes U+180E, which has not been white space since Unicode 6.3), and a pattern that could scan a
 * long run again from every position starts at the run's beginning only.
 *
 * Included by pretok.c only, which defines ROW.
 */

#define WS "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define SPACE "[" WS "]"      /* \s */
#define NOT_SPACE "[^" WS "]" /* \S */
/* Newlines with the space before them; a run of spaces but for the last before a word; what space is left. */
#define SPACE_TAIL "|" SPACE "*[\\r\\n]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define GPT2                                                                                                          \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" WS "\\p{L}\\p{N}]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+"
/* The pattern of cl100k and its descendants, with the part that takes digits. */
#define CL100K(digits) \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^" WS "\\p{L}\\p{N}]+[\\r\\n]*" SPACE_TAIL
/* The pattern of o200k: words split at a change from lower to upper case. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(tail) "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" tail "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" tail
#define DEEPSEEK_V3_WORDS                                                                                              \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"                       \
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*" SPACE_TAIL
#define DEEPSEEK_CJK "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
#define DEEPSEEK_LLM_LETTERS                                                                                           \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}\\x{295}-\\x{2af}"   \
    "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}"     \
    "\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}"       \
    "\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}"                  \
    "\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}"                  \
    "\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}"          \
    "\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}"         \
    "\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}"          \
    "\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}"                    \
    "\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}"          \
    "\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}"                   \
    "\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}"                  \
    "\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}"          \
    "\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"

/* Used when a file has no tokenizer.ggml.pre at all, as files from before 2024 do. */
ROW("default", 0, "[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]")
ROW("gpt-2 phi-2 gigachat a.x-4.0 mellum exaone4 jais trillion granite-docling", 0, GPT2)
ROW("mpt olmo", MICA_PRETOK_NFC, GPT2)
ROW("starcoder refact smollm codeshell exaone minerva-7b mellum2", 0, "\\p{N}", GPT2)
ROW("command-r", MICA_PRETOK_NFC, "\\p{N}", GPT2)
ROW("falcon", 0, "[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]")

ROW("llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2", MICA_PRETOK_WHOLE_WORDS | MICA_PRETOK_BOS,
    CL100K("\\p{N}{1,3}"))
ROW("dbrx smaug-bpe chatglm-bpe", 0, CL100K("\\p{N}{1,3}"))
ROW("glm4", MICA_PRETOK_WHOLE_WORDS, CL100K("\\p{N}{1,3}"))
ROW("qwen2", MICA_PRETOK_NFC, CL100K("\\p{N}"))
ROW("deepseek-r1-qwen megrez stablelm2 hunyuan grok-2 solar-open kormo", 0, CL100K("\\p{N}"))
ROW("qwen35", 0,
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" WS "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" SPACE_TAIL)
ROW("seed-coder", 0,
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^" WS "\\p{L}\\p{N}\\r\\n]+" SPACE_TAIL)
ROW("bailingmoe bailingmoe2 llada-moe", 0,
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^" WS "\\p{L}\\p{N}]+[\\r\\n]*|" SPACE "*[\\r\\n]|" SPACE
    "+(?!" NOT_SPACE ")|" SPACE "+")
ROW("gpt-4o llama4 kanana2 minimax-m2", 0,
    CASED(CONTRACTION "?") "|\\p{N}{1,3}| ?[^" WS "\\p{L}\\p{N}]+[\\r\\n/]*" SPACE_TAIL)
ROW("tekken", MICA_PRETOK_WHOLE_WORDS | MICA_PRETOK_BOS,
    CASED("") "|\\p{N}| ?[^" WS "\\p{L}\\p{N}]+[\\r\\n/]*" SPACE_TAIL)

ROW("deepseek-llm", 0, "[\\r\\n]", SPACE "?[" DEEPSEEK_LLM_LETTERS "]+",
    SPACE "?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+",
    "(?<!" SPACE ")" SPACE "++$", DEEPSEEK_CJK, "\\p{N}+")
ROW("deepseek-coder", 0, "[\\r\\n]", SPACE "?\\p{L}+", SPACE "?\\p{P}+", DEEPSEEK_CJK, "\\p{N}")
ROW("deepseek-v3 hunyuan-dense joyai-llm", 0, "\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",
    DEEPSEEK_V3_WORDS)

#undef WS
#undef SPACE
#undef NOT_SPACE
#undef SPACE_TAIL
#undef CONTRACTION
#undef GPT2
#undef CL100K
#undef UPPER
#undef LOWER
#undef CASED
#undef DEEPSEEK_V3_WORDS
#undef DEEPSEEK_CJK
#undef DEEPSEEK_LLM_LETTERS
