"""Writes the golden files of the mixtures of experts, as make_golden.py does for
the dense architectures; what it says about the files holds here too.

    pip install torch transformers gguf     (made with 2.15, 5.24, 0.19)
    python make_golden_sparse.py [name...]

Compared with llama.cpp (F32 KV cache, one thread), the NMSE was: qwen3moe 4.5e-7;
deepseek3 1.5e-6; gpt-oss 1.5e-2, and 8.8e-7 when it is made with truncate=True,
since llama.cpp rounds the ends of YaRN's range, which gpt-oss was trained without.
It knows deepseek2 without a latent for queries only with 27 layers and ranks groups
as V3 does; made with those, without groups and with all experts chosen (over so
many layers, a rounding decides the choice somewhere), it gave 4.2e-6, and 3.3e-6 in
the newer layout.
"""

import sys

import torch
import transformers as hf

from make_golden import BASE, HEAD, PRE_NORM, TOKENS, VOCAB, File, seeded

# Whole blocks of the quantised types, so that tests can quantise experts.
BASE = BASE | dict(hidden_size=32)

ATTENTION = {ours: theirs for ours, theirs in PRE_NORM.items() if not ours.startswith("ffn_")}


def matters(model, why, change):
    """A part that no edit of the file can leave out must show when it is left out
    of the reference."""
    tokens = torch.randint(0, VOCAB, (1, TOKENS), generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        want = model(tokens).logits
        got = change(model)(tokens).logits
    error = float((want - got).square().sum() / want.square().sum())
    print(f"  without {why}: NMSE {error:.1e}")
    assert error > 2e-3, why


def split_experts(f, i, gate_up, down, names=("gate", "up")):
    """Files have gate and up apart, [experts, out, in]."""
    for name, w in zip(names, gate_up):
        f.tensor(f"blk.{i}.ffn_{name}_exps.weight", w)
    f.tensor(f"blk.{i}.ffn_down_exps.weight", down)


def qwen3moe(name, seed):
    config = hf.Qwen3MoeConfig(**(BASE | dict(
        head_dim=HEAD, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=96, norm_topk_prob=True,
        decoder_sparse_step=1, mlp_only_layers=[], rope_parameters=dict(rope_type="default", rope_theta=1e6))))
    model = seeded(hf.Qwen3MoeForCausalLM(config), seed)
    f = File(name, "qwen3moe", model)
    f.ints({"expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 96})
    f.ends()
    f.layers(ATTENTION | {
        "ffn_norm.weight": "post_attention_layernorm.weight",
        "attn_q_norm.weight": "self_attn.q_norm.weight",
        "attn_k_norm.weight": "self_attn.k_norm.weight",
        "ffn_gate_inp.weight": "mlp.gate.weight",
    })
    for i in range(config.num_hidden_layers):
        at = f"layers.{i}.mlp.experts."
        split_experts(f, i, f.weights[at + "gate_up_proj"].chunk(2, dim=1), f.weights[at + "down_proj"])
    f.finish(model)


def gptoss(name, seed):
    yarn = dict(rope_type="yarn", rope_theta=100.0, factor=32.0, beta_fast=32.0, beta_slow=1.0,
                original_max_position_embeddings=128, truncate=False)

    def make(**more):
        config = hf.GptOssConfig(**(BASE | dict(
            head_dim=HEAD, intermediate_size=96, num_local_experts=4, num_experts_per_tok=2, sliding_window=6,
            max_position_embeddings=4096, rope_parameters=yarn) | more))
        model = seeded(hf.GptOssForCausalLM(config), seed)
        with torch.no_grad():
            for layer in model.model.layers:
                layer.mlp.experts.gate_up_proj *= 3  # enough for the clamp to matter
        return model

    model = make()
    config = model.config
    assert config.layer_types == ["sliding_attention", "full_attention"]
    matters(model, "the clamp", lambda _: make(swiglu_limit=1e9))
    matters(model, "YaRN's unrounded range", lambda _: make(rope_parameters=yarn | dict(truncate=True)))
    f = File(name, "gpt-oss", model)
    f.ints({"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 96,
            "attention.sliding_window": config.sliding_window})
    f.scaling("yarn", 32.0, 128)
    f.floats({"rope.scaling.yarn_beta_fast": 32.0, "rope.scaling.yarn_beta_slow": 1.0})
    f.ends()
    f.layers(ATTENTION | {f"attn_{x}.bias": f"self_attn.{x}_proj.bias" for x in "qkv"} | {
        "attn_output.bias": "self_attn.o_proj.bias",
        "attn_sinks.weight": "self_attn.sinks",
        "post_attention_norm.weight": "post_attention_layernorm.weight",
        "ffn_gate_inp.weight": "mlp.router.weight",
        "ffn_gate_inp.bias": "mlp.router.bias",
        "ffn_down_exps.bias": "mlp.experts.down_proj_bias",
    })
    for i in range(config.num_hidden_layers):
        # Columns of gate and up alternate, and matrices are stored [in, out].
        at = f"layers.{i}.mlp.experts."
        w = f.weights[at + "gate_up_proj"].transpose(1, 2)
        split_experts(f, i, (w[:, ::2], w[:, 1::2]), f.weights[at + "down_proj"].transpose(1, 2))
        bias = f.weights[at + "gate_up_proj_bias"]
        f.tensor(f"blk.{i}.ffn_gate_exps.bias", bias[:, ::2])
        f.tensor(f"blk.{i}.ffn_up_exps.bias", bias[:, 1::2])
    f.finish(model)


# The widths in the KV cache are the real models', as ggml's Metal attention takes
# no others: 192 and 128 for expanded heads, 512 + 64 for the latent.
LATENT = dict(num_attention_heads=2, num_key_value_heads=2, qk_rope_head_dim=64, n_routed_experts=8,
              num_experts_per_tok=3, moe_intermediate_size=64, n_shared_experts=2, first_k_dense_replace=1,
              intermediate_size=160, max_position_embeddings=1024)


class LatentFile(File):
    """deepseek2; absorbed is the newer of the two layouts of attn_kv_b."""

    def __init__(self, name, model, absorbed):
        super().__init__(name, "deepseek2", model)
        c = model.config
        self.ints({
            "attention.kv_lora_rank": c.kv_lora_rank, "rope.dimension_count": c.qk_rope_head_dim,
            "expert_count": c.n_routed_experts, "expert_used_count": c.num_experts_per_tok,
            "expert_feed_forward_length": c.moe_intermediate_size, "expert_shared_count": c.n_shared_experts,
            "leading_dense_block_count": c.first_k_dense_replace,
        })
        self.floats({"expert_weights_scale": c.routed_scaling_factor})
        key = c.qk_nope_head_dim + c.qk_rope_head_dim
        if absorbed:
            self.ints({
                "attention.key_length_mla": key, "attention.value_length_mla": c.v_head_dim,
                "attention.key_length": c.kv_lora_rank + c.qk_rope_head_dim, "attention.value_length": c.kv_lora_rank,
                "attention.head_count_kv": 1,
            })
        else:
            self.ints({"attention.key_length": key, "attention.value_length": c.v_head_dim})
        self.ends()
        self.layers({
            "attn_norm.weight": "input_layernorm.weight",
            "attn_kv_a_mqa.weight": "self_attn.kv_a_proj_with_mqa.weight",
            "attn_kv_a_norm.weight": "self_attn.kv_a_layernorm.weight",
            "attn_output.weight": "self_attn.o_proj.weight",
            "ffn_norm.weight": "post_attention_layernorm.weight",
        } | ({
            "attn_q_a.weight": "self_attn.q_a_proj.weight",
            "attn_q_a_norm.weight": "self_attn.q_a_layernorm.weight",
            "attn_q_b.weight": "self_attn.q_b_proj.weight",
        } if c.q_lora_rank else {"attn_q.weight": "self_attn.q_proj.weight"}))
        for i in range(c.num_hidden_layers):
            w = self.weights[f"layers.{i}.self_attn.kv_b_proj.weight"]
            if absorbed:  # for each head: keys transposed, values as they are
                heads = w.view(c.num_attention_heads, c.qk_nope_head_dim + c.v_head_dim, c.kv_lora_rank)
                k, v = heads.split([c.qk_nope_head_dim, c.v_head_dim], dim=1)
                self.tensor(f"blk.{i}.attn_k_b.weight", k.transpose(1, 2))
                self.tensor(f"blk.{i}.attn_v_b.weight", v)
            else:
                self.tensor(f"blk.{i}.attn_kv_b.weight", w)
            at = f"layers.{i}.mlp."
            shared = at + "shared_experts."
            if i < c.first_k_dense_replace:
                for x in "gate", "up", "down":
                    self.tensor(f"blk.{i}.ffn_{x}.weight", self.weights[f"{at}{x}_proj.weight"])
                continue
            self.tensor(f"blk.{i}.ffn_gate_inp.weight", self.weights[at + "gate.weight"])
            split_experts(self, i, self.weights[at + "experts.gate_up_proj"].chunk(2, dim=1),
                          self.weights[at + "experts.down_proj"])
            for x in "gate", "up", "down":
                self.tensor(f"blk.{i}.ffn_{x}_shexp.weight", self.weights[f"{shared}{x}_proj.weight"])

    def ints(self, kv):
        # What File writes for all architectures is not always true of this one.
        if "vocab_size" in kv:
            kv = {k: v for k, v in kv.items() if not k.startswith(("attention.key", "attention.value", "rope.dim")) and
                  k != "attention.head_count_kv"}
        super().ints(kv)


def deepseek3(name, seed):
    """As DeepSeek V3, R1 and Kimi K2: sigmoid gating with a bias that decides the
    choice, groups, weights normalised and scaled, YaRN with mscale."""
    yarn = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, beta_fast=32.0, beta_slow=1.0, mscale=1.0,
                mscale_all_dim=1.0, original_max_position_embeddings=256)
    config = hf.DeepseekV3Config(**(BASE | LATENT | dict(
        q_lora_rank=24, kv_lora_rank=512, qk_nope_head_dim=16, v_head_dim=16, n_group=4, topk_group=2, routed_scaling_factor=2.5, norm_topk_prob=True, rope_parameters=yarn)))
    model = seeded(hf.DeepseekV3ForCausalLM(config), seed)
    bias = 0.5 * torch.randn(8, generator=torch.Generator().manual_seed(seed))
    model.model.layers[1].mlp.gate.e_score_correction_bias.copy_(bias)
    f = LatentFile(name, model, absorbed=True)
    f.ints({"attention.q_lora_rank": 24, "expert_gating_func": 2, "expert_group_count": 4, "expert_group_used_count": 2})
    f.gguf.add_bool("deepseek2.expert_weights_norm", True)
    f.scaling("yarn", 4.0, 256)
    f.floats({"rope.scaling.yarn_log_multiplier": 0.1})
    f.tensor("blk.1.exp_probs_b.bias", bias)
    f.finish(model)


def deepseek2(name, seed):
    """As DeepSeek V2: no latent for queries, softmax gating, the older layout of
    attn_kv_b; groups as in its large model."""
    config = hf.DeepseekV2Config(**(BASE | LATENT | dict(
        q_lora_rank=None, kv_lora_rank=16, qk_nope_head_dim=128, v_head_dim=128, n_group=4, topk_group=2, topk_method="group_limited_greedy", routed_scaling_factor=4.0,
        norm_topk_prob=False, rope_parameters=dict(rope_type="default", rope_theta=10000.0))))
    model = seeded(hf.DeepseekV2ForCausalLM(config), seed)
    f = LatentFile(name, model, absorbed=False)
    f.ints({"expert_group_count": 4, "expert_group_used_count": 2})
    f.finish(model)


MODELS = {
    "qwen3moe": lambda name: qwen3moe(name, 21),
    "gpt-oss": lambda name: gptoss(name, 22),
    "deepseek2": lambda name: deepseek2(name, 23),
    "deepseek3": lambda name: deepseek3(name, 24),
}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or MODELS:
        MODELS[wanted](wanted)
