package shape

// gpt is a decoder as GPT-2 and Megatron-LM have it.
func gpt(name string, blocks, hidden, heads, sequence, vocabulary int) Shape {
	return Shape{Name: name, Blocks: blocks, Hidden: hidden, FFN: 4 * hidden, Heads: heads, Sequence: sequence, Vocabulary: vocabulary,
		Positions: sequence, Tied: true, Bias: true, Dropout: true}
}

// llama is a shape with what Llama and those after it have: a gated feed-forward and attention
// in one kernel.
func llama(s Shape) Shape {
	s.Gated, s.Fused = true, true
	return s
}

// image is an encoder of images of 224 x 224 in patches of 14 x 14, with a token for the class.
func image(name string, blocks, hidden, ffn, heads int) Shape {
	return Shape{Name: name, Blocks: blocks, Hidden: hidden, FFN: ffn, Heads: heads, Sequence: 257, Vocabulary: 1000, Patch: 3 * 14 * 14, Positions: 257, Bias: true}
}

// Tiny is a model of nobody's: small enough for processors, and as the trainer here builds it, so that
// all that is done with models can be tried for real on any machine.
var Tiny = Shape{Name: "tiny", Blocks: 4, Hidden: 64, FFN: 256, Heads: 4, Sequence: 32, Vocabulary: 256, Positions: 32}

// Presets are published models, in the configurations that their authors trained. TestParameters
// holds each against the published count.
var Presets = []Shape{
	gpt("gpt-2", 48, 1600, 25, 1024, 50257),     // Radford et al. 2019, the largest
	gpt("gpt-22b", 48, 6144, 64, 2048, 51200),   // of Megatron-LM, as those below it, with the vocabulary filled up
	gpt("gpt-3", 96, 12288, 96, 2048, 51200),    // 175 billion
	gpt("mt-nlg", 105, 20480, 128, 2048, 51200), // 530 billion
	gpt("1t", 128, 25600, 160, 2048, 51200),     // on 3,072 devices in Narayanan et al. 2021
	// Dubey et al. 2024.
	llama(Shape{Name: "llama-3-8b", Blocks: 32, Hidden: 4096, FFN: 14336, Heads: 32, KVHeads: 8, Sequence: 8192, Vocabulary: 128256}),
	llama(Shape{Name: "llama-3-70b", Blocks: 80, Hidden: 8192, FFN: 28672, Heads: 64, KVHeads: 8, Sequence: 8192, Vocabulary: 128256}),
	llama(Shape{Name: "llama-3-405b", Blocks: 126, Hidden: 16384, FFN: 53248, Heads: 128, KVHeads: 8, Sequence: 8192, Vocabulary: 128256}),
	llama(Shape{Name: "mixtral", Blocks: 32, Hidden: 4096, FFN: 14336, Heads: 32, KVHeads: 8, Sequence: 8192, Vocabulary: 32000,
		Experts: &Experts{Count: 8, FFN: 14336, Chosen: 2}}),
	// Without the layers that predict a second token.
	llama(Shape{Name: "deepseek-v3", Blocks: 61, Hidden: 7168, FFN: 18432, Heads: 128, Sequence: 4096, Vocabulary: 129280,
		Experts: &Experts{Count: 256, FFN: 2048, Chosen: 8, Shared: 1, Dense: 3},
		Latent:  &Latent{Query: 1536, KeyValue: 512, Turned: 64, Plain: 128, Value: 128}}),
	// Raffel et al. 2020, of 11 billion: few wide vectors, very wide networks.
	{Name: "t5", Encoder: 24, Blocks: 24, Hidden: 1024, FFN: 65536, Heads: 128, HeadWidth: 128, Sequence: 512, Vocabulary: 32128, Tied: true, Dropout: true},
	// Dosovitskiy et al. 2021 and Dehghani et al. 2023.
	image("vit-h", 32, 1280, 5120, 16),
	image("vit-22b", 48, 6144, 24576, 48),
}
