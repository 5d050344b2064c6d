"""Writes the golden files of the dense architectures: tiny models with seeded
random weights, as GGUF, together with the logits that Hugging Face transformers
computes for them.

    pip install torch transformers gguf     (made with 2.15, 5.24, 0.19)
    python make_golden.py [--square] [--out DIR] [name...]

Each file holds the model and two more metadata keys: golden.tokens, and
golden.logits, the logits after each of the tokens (F32, tokens x vocabulary).

How a Hugging Face tensor becomes a GGUF one is written down here from the
formats' conventions, so a mistake shared by this script and by the engine could
hide. Therefore files of this script were loaded in llama.cpp too (through
libllama, all tokens in one batch, one thread), and its logits compared with
golden.logits. They were made with --square: heads as wide together as the residual
stream, which llama.cpp demands of qwen2 and phi3 and which would make the committed
files too large. The normalised mean squared error was 1.3e-6 (llama), 4.1e-7
(llama-linear), 6.1e-7 (llama-yarn), 9.1e-7 (qwen2), 7.0e-7 (qwen3), 6.4e-7
(phi3-long), 4.2e-7 (phi3-short), 9.1e-8 (granite) and 2.6e-8 (gemma3). llama.cpp
leaves Phi-3's sliding window out, so it cannot confirm phi3, which has one.

Heads are 32 wide because that is the least that ggml's Metal attention takes.
"""

import argparse
import math
import os

import gguf
import torch
import transformers as hf

args = argparse.ArgumentParser()
args.add_argument("--square", action="store_true")
args.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
args.add_argument("names", nargs="*")
args = args.parse_args()

VOCAB, TOKENS, HEAD = 64, 24, 32

# What all models have unless they say otherwise. Heads can be dealt to two ranks
# (unevenly) and to three.
BASE = dict(
    vocab_size=VOCAB,
    hidden_size=6 * HEAD if args.square else 24,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=6,
    num_key_value_heads=3,
    max_position_embeddings=512,
    bos_token_id=None,
    eos_token_id=None,
    pad_token_id=None,
    attn_implementation="eager",
)


def seeded(model, seed):
    """Fills the weights so that every part of the model matters for the logits."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, w in model.named_parameters():
            x = torch.randn(w.shape, generator=rng)
            if name.endswith("bias"):
                w.copy_(0.5 * x)
            elif w.dim() == 1:  # norms; Gemma's are stored less one
                w.copy_(0.3 * x + (0 if "Gemma" in type(model).__name__ else 1))
            elif "embed_tokens" in name:
                w.copy_(x)
            else:
                w.copy_(1.5 * x / math.sqrt(w.shape[1]))
    return model.eval()


def interleave(w, heads):
    """Hugging Face rotates pairs that are half a head apart; where GGUF rotates
    neighbours, the rows of Q and K are put in that order."""
    return w.reshape(heads, 2, -1, w.shape[-1]).transpose(1, 2).reshape(w.shape)


class File:
    def __init__(self, name, arch, model):
        self.config = c = model.config
        self.weights = {k.removeprefix("model."): v.detach() for k, v in model.state_dict().items()}
        self.arch = arch
        self.path = os.path.join(args.out, name + ".gguf")
        self.gguf = gguf.GGUFWriter(self.path, arch)
        self.gguf.add_name(name)
        self.gguf.add_string("tokenizer.ggml.model", "none")
        self.ints({
            "vocab_size": c.vocab_size,
            "context_length": c.max_position_embeddings,
            "embedding_length": c.hidden_size,
            "block_count": c.num_hidden_layers,
            "feed_forward_length": c.intermediate_size,
            "attention.head_count": c.num_attention_heads,
            "attention.head_count_kv": c.num_key_value_heads,
            "attention.key_length": HEAD,
            "attention.value_length": HEAD,
            "rope.dimension_count": int(HEAD * c.rope_parameters.get("partial_rotary_factor", 1)),
        })
        self.floats({"attention.layer_norm_rms_epsilon": c.rms_norm_eps})
        if "rope_theta" in c.rope_parameters:
            self.floats({"rope.freq_base": c.rope_parameters["rope_theta"]})

    def ints(self, kv):
        for k, v in kv.items():
            self.gguf.add_uint32(f"{self.arch}.{k}", v)

    def floats(self, kv):
        for k, v in kv.items():
            self.gguf.add_float32(f"{self.arch}.{k}", v)

    def scaling(self, kind, factor, original):
        self.gguf.add_string(f"{self.arch}.rope.scaling.type", kind)
        self.floats({"rope.scaling.factor": factor})
        self.ints({"rope.scaling.original_context_length": original})

    def tensor(self, name, w):
        self.gguf.add_tensor(name, w.float().contiguous().numpy())

    def ends(self, norm=lambda w: w):
        self.tensor("token_embd.weight", self.weights["embed_tokens.weight"])
        self.tensor("output_norm.weight", norm(self.weights["norm.weight"]))
        if not self.config.tie_word_embeddings:
            self.tensor("output.weight", self.weights["lm_head.weight"])

    def layers(self, names, change=lambda name, w: w):
        for i in range(self.config.num_hidden_layers):
            for ours, theirs in names.items():
                self.tensor(f"blk.{i}.{ours}", change(ours, self.weights[f"layers.{i}.{theirs}"]))

    def rotate_neighbours(self, name, w):
        if name == "attn_q.weight":
            return interleave(w, self.config.num_attention_heads)
        if name == "attn_k.weight":
            return interleave(w, self.config.num_key_value_heads)
        return w

    def finish(self, model):
        tokens = torch.randint(0, VOCAB, (1, TOKENS), generator=torch.Generator().manual_seed(7))
        with torch.no_grad():
            logits = model(tokens).logits[0].float()
        # A model whose logits hardly depend on its parts would prove nothing.
        assert torch.isfinite(logits).all() and 0.3 < logits.std() < 30, logits.std()
        self.gguf.add_array("golden.tokens", tokens[0].tolist())
        self.gguf.add_array("golden.logits", logits.flatten().tolist())
        self.gguf.write_header_to_file()
        self.gguf.write_kv_data_to_file()
        self.gguf.write_tensors_to_file()
        self.gguf.close()
        print(f"{os.path.basename(self.path)}: {os.path.getsize(self.path)} bytes")


PRE_NORM = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}


def llama(name, seed, rope, **more):
    model = seeded(hf.LlamaForCausalLM(hf.LlamaConfig(**(BASE | dict(head_dim=HEAD, rope_parameters=rope) | more))), seed)
    f = File(name, "llama", model)
    if rope["rope_type"] == "llama3":
        f.tensor("rope_freqs.weight", torch.tensor(llama3_factors(rope, HEAD)))
    elif rope["rope_type"] != "default":
        f.scaling(rope["rope_type"], rope["factor"], rope.get("original_max_position_embeddings", 512))
    f.ends()
    f.layers(PRE_NORM, f.rotate_neighbours)
    f.finish(model)


def llama3_factors(rope, dim):
    """Divisors of the frequencies, by wavelength: short ones stay, long ones are
    scaled by the factor, and those between are mixed."""
    out = []
    context, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
    for i in range(0, dim, 2):
        turns = context / (2 * math.pi * rope["rope_theta"] ** (i / dim))
        keep = min(1.0, max(0.0, (turns - low) / (high - low)))
        out.append(1 / (keep + (1 - keep) / rope["factor"]))
    return out


def qwen2(name, seed):
    config = hf.Qwen2Config(**(BASE | dict(tie_word_embeddings=True)))
    config.head_dim = HEAD
    model = seeded(hf.Qwen2ForCausalLM(config), seed)
    f = File(name, "qwen2", model)
    f.ends()
    f.layers(PRE_NORM | {f"attn_{x}.bias": f"self_attn.{x}_proj.bias" for x in "qkv"})
    f.finish(model)


def qwen3(name, seed):
    config = hf.Qwen3Config(**(BASE | dict(head_dim=HEAD, rope_parameters=dict(rope_type="default", rope_theta=1e6))))
    model = seeded(hf.Qwen3ForCausalLM(config), seed)
    f = File(name, "qwen3", model)
    f.ends()
    f.layers(PRE_NORM | {f"attn_{x}_norm.weight": f"self_attn.{x}_norm.weight" for x in "qk"})
    f.finish(model)


def phi3(name, seed, rope=None, **more):
    config = hf.Phi3Config(**(BASE | more))
    config.head_dim = HEAD
    if rope:  # set afterwards: the constructor insists on square heads
        rope["original_max_position_embeddings"] = config.original_max_position_embeddings
        config.rope_parameters = rope
    model = seeded(hf.Phi3ForCausalLM(config), seed)
    f = File(name, "phi3", model)
    f.ints({"attention.sliding_window": config.sliding_window or 0})
    if rope:
        f.ints({"rope.scaling.original_context_length": config.original_max_position_embeddings})
        scale = config.max_position_embeddings / config.original_max_position_embeddings
        f.floats({"rope.scaling.attn_factor": math.sqrt(1 + math.log(scale) / math.log(config.original_max_position_embeddings))})
        f.tensor("rope_factors_long.weight", torch.tensor(rope["long_factor"]))
        f.tensor("rope_factors_short.weight", torch.tensor(rope["short_factor"]))
    f.ends()
    f.layers({
        "attn_norm.weight": "input_layernorm.weight",
        "attn_qkv.weight": "self_attn.qkv_proj.weight",
        "attn_output.weight": "self_attn.o_proj.weight",
        "ffn_norm.weight": "post_attention_layernorm.weight",
        "ffn_up.weight": "mlp.gate_up_proj.weight",
        "ffn_down.weight": "mlp.down_proj.weight",
    })
    f.finish(model)


def granite(name, seed):
    scales = dict(attention_multiplier=0.5, embedding_multiplier=3.0, residual_multiplier=0.6, logits_scaling=2.5)
    config = hf.GraniteConfig(**(BASE | scales | dict(tie_word_embeddings=True)))
    config.head_dim = HEAD
    model = seeded(hf.GraniteForCausalLM(config), seed)
    f = File(name, "granite", model)
    f.floats({
        "attention.scale": config.attention_multiplier,
        "embedding_scale": config.embedding_multiplier,
        "residual_scale": config.residual_multiplier,
        "logit_scale": config.logits_scaling,
    })
    f.ends()
    f.layers(PRE_NORM, f.rotate_neighbours)
    f.finish(model)


def gemma3(name, seed):
    config = hf.Gemma3TextConfig(**(BASE | dict(
        intermediate_size=64, num_hidden_layers=6, num_attention_heads=2, num_key_value_heads=2, head_dim=HEAD,
        query_pre_attn_scalar=HEAD, sliding_window=6, final_logit_softcapping=4.0, tie_word_embeddings=True,
        rope_parameters=dict(
            full_attention=dict(rope_type="linear", rope_theta=1e6, factor=8.0),
            sliding_attention=dict(rope_type="default", rope_theta=1e3)))))
    model = seeded(hf.Gemma3ForCausalLM(config), seed)
    f = File(name, "gemma3", model)
    f.scaling("linear", 8.0, 512)
    f.floats({"rope.freq_base": 1e6, "rope.freq_base_swa": 1e3, "final_logit_softcapping": 4.0})
    f.ints({"attention.sliding_window": config.sliding_window})

    def plus_one(name, w):  # transformers multiplies by 1 + weight
        return w + 1 if name.endswith("norm.weight") else w

    f.ends(norm=lambda w: w + 1)
    f.layers(PRE_NORM | {
        "post_attention_norm.weight": "post_attention_layernorm.weight",
        "ffn_norm.weight": "pre_feedforward_layernorm.weight",
        "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
        "attn_q_norm.weight": "self_attn.q_norm.weight",
        "attn_k_norm.weight": "self_attn.k_norm.weight",
    }, plus_one)
    f.finish(model)


def longrope(original):
    pairs = HEAD * 3 // 4 // 2
    rope = dict(rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.75,
                short_factor=[1 + 0.1 * i for i in range(pairs)], long_factor=[1.2**i for i in range(pairs)])
    return dict(rope=rope, num_hidden_layers=1, original_max_position_embeddings=original, max_position_embeddings=4 * original)


MODELS = {
    "llama": lambda name: llama(name, 1, dict(
        rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=128)),
    "llama-linear": lambda name: llama(name, 2, dict(rope_type="linear", rope_theta=10000.0, factor=3.0),
                                       tie_word_embeddings=True, num_hidden_layers=1),
    "llama-yarn": lambda name: llama(name, 3, dict(
        rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=256),
        max_position_embeddings=1024, num_hidden_layers=1),
    "qwen2": lambda name: qwen2(name, 4),
    "qwen3": lambda name: qwen3(name, 5),
    "phi3": lambda name: phi3(name, 6, sliding_window=6),
    "phi3-long": lambda name: phi3(name, 7, **longrope(16)),
    "phi3-short": lambda name: phi3(name, 8, tie_word_embeddings=True, **longrope(256)),
    "granite": lambda name: granite(name, 9),
    "gemma3": lambda name: gemma3(name, 10),
}

if __name__ == "__main__":
    for wanted in args.names or MODELS:
        MODELS[wanted](wanted)
