"""Renders conversations with transformers' own Jinja environment, for the tests of package chat to compare with.

    pip install transformers jinja2
    python make_golden.py          # writes golden.json beside this file
"""
import datetime
import json
import pathlib

import transformers.utils.chat_template_utils as utils

HERE = pathlib.Path(__file__).parent


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 3, 9, 14, 5, 0)


utils.datetime = Clock  # what strftime_now asks

CONVERSATIONS = {
    "question": [{"role": "user", "content": "What is the capital of France?"}],
    "system": [
        {"role": "system", "content": "You are terse."},
        {"role": "user", "content": "  Hi <b> \"there\" \n"},
    ],
    "thought": [
        {"role": "system", "content": "नमस्ते"},
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "<think>\nadd\n</think>\n\n2"},
        {"role": "user", "content": "And 2+2?\nQuick."},
    ],
    "turns": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": "d"},
        {"role": "user", "content": "e"},
    ],
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "What's the weather \"now\" in <city>? मौसम",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "The city"},
                    "days": {"type": "integer", "minimum": 1, "factor": 0.5},
                    "units": {"type": "string", "enum": ["c", "f"]},
                },
                "required": ["city"],
            },
        },
    }
]


def cases():
    for name in CONVERSATIONS:
        for generate in (True, False):
            yield name, generate, None, False
    for thinking in (True, False):
        yield "question", True, thinking, False
        yield "system", True, thinking, False
    yield "system", True, None, True


def main():
    out = []
    for path in sorted((HERE / "templates").glob("*.jinja")):
        template = utils._compile_jinja_template(path.read_text())
        for name, generate, thinking, tools in cases():
            extra = {} if thinking is None else {"enable_thinking": thinking}
            case = {"template": path.name, "conversation": name, "generate": generate, "thinking": thinking, "tools": tools}
            try:
                case["want"] = template.render(
                    messages=CONVERSATIONS[name], tools=TOOLS if tools else None, documents=None,
                    add_generation_prompt=generate, bos_token="<s>", eos_token="</s>", **extra)
            except Exception as e:
                case["refused"] = str(e)
            out.append(case)
    golden = {"conversations": CONVERSATIONS, "tools": TOOLS, "cases": out}
    (HERE / "golden.json").write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")


main()
