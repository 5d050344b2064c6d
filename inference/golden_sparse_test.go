package inference

import "testing"

func TestGoldenQwen3MoE(t *testing.T) { checkGolden(t, "qwen3moe", 2, 3) }

func TestGoldenGPTOSS(t *testing.T) { checkGolden(t, "gpt-oss", 2, 3) }

func TestGoldenDeepSeek2(t *testing.T) { checkGolden(t, "deepseek2", 2) }

func TestGoldenDeepSeek3(t *testing.T) { checkGolden(t, "deepseek3", 2) }
