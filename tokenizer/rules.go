package tokenizer

import "sort"

// rule is what tokenizer.ggml.pre decides.
type rule struct {
	stages []stage
	// nfc: the model's own tokenizer puts text into Unicode normal form C.
	nfc bool
	// ignoreMerges: a piece that is a token as a whole is that token, whatever
	// the merges would make of it.
	ignoreMerges bool
	// addBOS holds where tokenizer.ggml.add_bos_token is absent.
	addBOS bool
	// mayLack lists the bytes for which the published vocabulary has no token.
	// The model's own tokenizer drops them from the text, and so do we.
	mayLack string
}

// The stages, by the pattern they implement.
var (
	gpt2Stages   = []stage{isolate(matchGPT2)}
	digitsStages = []stage{isolate(run(cN, 1)), isolate(matchGPT2)}
	qwen2Stages  = []stage{isolate(wordRule{letters: cL, digits: 1, tail: newlines}.match)}
	qwen35Stages = []stage{isolate(wordRule{letters: cL | cM, digits: 1, tail: newlines}.match)}
	llama3Stages = []stage{isolate(wordRule{letters: cL, digits: 3, tail: newlines}.match)}
	seedStages   = []stage{isolate(wordRule{letters: cL, digits: 1, tail: noTail}.match)}
	gpt4oStages  = []stage{isolate(caseRule{digits: 3, tail: linesPath}.match)}
	tekkenStages = []stage{isolate(caseRule{digits: 1, tail: linesPath, noSuffix: true}.match)}
	kimiStages   = []stage{isolate(caseRule{digits: 3, tail: newlines, han: true}.match)}
	bloomStages  = []stage{isolate(matchNonStop)}
	vikingStages = []stage{isolate(matchNonStop), isolate(run(cN, 1))}

	minicpm5Stages = []stage{
		isolate(run(cN, 3)),
		isolate(wordRule{letters: cL, digits: 0, tail: newlines}.match),
	}
	deepseek3Stages = []stage{
		isolate(run(cN, 3)),
		isolate(runOf(runeRange{0x4E00, 0x9FA5}, runeRange{0x3040, 0x30FF})),
		isolate(matchDeepSeek3),
	}
	deepseekLLMStages = []stage{
		isolate(matchLineEnd),
		isolate(afterSpace(isCasedLetter)),
		isolate(afterSpace(isWidePunct)),
		trailingSpace,
		isolate(runOf(cjkRanges...)),
		isolate(run(cN, 0)),
	}
	deepseekCoderStages = []stage{
		isolate(matchLineEnd),
		isolate(afterSpace(hasClass(cL))),
		isolate(afterSpace(hasClass(cP))),
		isolate(runOf(cjkRanges...)),
		isolate(run(cN, 1)),
	}
	falconStages = []stage{
		isolate(punctOr("$+<=>^~|`")),
		isolate(matchGPT2),
		isolate(matchThreeDigits),
	}
	defaultStages = []stage{
		isolate(punctOr("$+<=>^~|")),
		isolate(matchGPT2),
		isolate(run(cN, 0)),
		isolate(matchThreeDigits),
	}
	longcatStages = []stage{
		isolate(wordRule{letters: cL, digits: 1, tail: newlines}.match),
		isolate(afterBlank(widePunct...)),
		isolate(runOf(cjkRanges...)),
	}
	youtuStages = []stage{
		isolate(firstOf(
			runOf(runeRange{0xAC00, 0xD7A3}, runeRange{0x3131, 0x318E}),
			runOf(youtuPunct...),
			runOf(runeRange{0x3105, 0x312F}),
			runOf(runeRange{0x4E00, 0x9FA5}, runeRange{0x3040, 0x30FF}),
		)),
		isolate(caseRule{digits: 1, tail: linesPath}.match),
	}
	tinyAyaStages = []stage{
		wordDigits,
		isolate(caseRule{digits: 3, tail: linesPath}.match),
	}
	spark25Stages = []stage{
		isolate(run(cN, 1)),
		isolate(runOf(runeRange{0x4E00, 0x9FA5}, runeRange{0x3040, 0x30FF})),
		isolate(matchSpark25),
	}
	lagunaStages    = []stage{beforeLines, qwen2Stages[0]}
	ufakzekaStages  = []stage{isolate(wordRule{letters: cL, digits: 1, tail: newlines, plain: true}.match)}
	k2HorizonStages = []stage{isolate(matchK2Horizon)}
	superBPEStages  = []stage{isolate(run(cN, 0)), threesFromRight}
	exaoneMoEStages = []stage{isolate(matchExaoneMoE)}
	jais2Stages     = []stage{jais2}
)

// cjkRanges is the class [一-龥ࠀ-一가-퟿], whose second range runs from U+0800
// as published.
var cjkRanges = []runeRange{{0x0800, 0x9FA5}, {0xAC00, 0xD7FF}}

// widePunct is the class [！-／：-～‘-‟　-。《》「」【】].
var widePunct = []runeRange{{0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}, {0x2018, 0x201F}, {0x3000, 0x3002}, {0x300A, 0x300D}, {0x3010, 0x3011}}

// youtuPunct is the class [！…“”‘’—：；，、-〿︰-﹏].
var youtuPunct = []runeRange{
	{0xFF01, 0xFF01},
	{0x2026, 0x2026},
	{0x201C, 0x201D},
	{0x2018, 0x2019},
	{0x2014, 0x2014},
	{0xFF1A, 0xFF1B},
	{0xFF0C, 0xFF0C},
	{0x3001, 0x303F},
	{0xFE30, 0xFE4F},
}

// isWidePunct is the class [!-/:-~！-／：-～‘-‟　-。], where : to ~ spans the ASCII
// letters as published.
func isWidePunct(r rune) bool {
	return '!' <= r && r <= '/' || ':' <= r && r <= '~' ||
		0xFF01 <= r && r <= 0xFF0F || 0xFF1A <= r && r <= 0xFF5E ||
		0x2018 <= r && r <= 0x201F || 0x3000 <= r && r <= 0x3002
}

// smolLMLacks are the bytes without a token in the vocabulary that SmolLM and
// SmolLM2 publish.
const smolLMLacks = "\x04\x06\x13\x14\x16\x1d\xc0\xc1\xf1\xf2\xf5\xf6\xf7\xf8\xf9\xfa\xfb\xfc\xfd\xfe\xff"

// rules maps tokenizer.ggml.pre to its rule. testdata/README.md says for each
// which published pattern it was checked against.
var rules = map[string]rule{
	"qwen2":            {stages: qwen2Stages, nfc: true},
	"deepseek-r1-qwen": {stages: qwen2Stages, nfc: true},
	"qwen35":           {stages: qwen35Stages, nfc: true},
	"megrez":           {stages: qwen2Stages},
	"kormo":            {stages: qwen2Stages},
	"f2llmv2":          {stages: qwen2Stages, nfc: true},
	"stablelm2":        {stages: qwen2Stages},
	"hunyuan":          {stages: qwen2Stages},
	"solar-open":       {stages: qwen2Stages},
	"grok-2":           {stages: qwen2Stages},
	"bailingmoe":       {stages: qwen2Stages},
	"bailingmoe2":      {stages: qwen2Stages},
	"llada-moe":        {stages: qwen2Stages},
	"seed-coder":       {stages: seedStages},

	"llama-bpe":    {stages: llama3Stages, ignoreMerges: true, addBOS: true},
	"llama3":       {stages: llama3Stages, ignoreMerges: true, addBOS: true},
	"llama-v3":     {stages: llama3Stages, ignoreMerges: true, addBOS: true},
	"falcon3":      {stages: llama3Stages, ignoreMerges: true, addBOS: true},
	"falcon-h1":    {stages: llama3Stages, ignoreMerges: true, addBOS: true},
	"pixtral":      {stages: llama3Stages, ignoreMerges: true, addBOS: true},
	"midm-2.0":     {stages: llama3Stages, ignoreMerges: true, addBOS: true},
	"lfm2":         {stages: llama3Stages, ignoreMerges: true, addBOS: true},
	"jina-v5-nano": {stages: llama3Stages, ignoreMerges: true, addBOS: true},
	"dbrx":         {stages: llama3Stages},
	"smaug-bpe":    {stages: llama3Stages},
	"glm4":         {stages: llama3Stages},
	"chatglm-bpe":  {stages: llama3Stages},
	"minicpm5":     {stages: minicpm5Stages, ignoreMerges: true},
	"jais-2":       {stages: jais2Stages},

	"gpt-4o":     {stages: gpt4oStages},
	"llama4":     {stages: gpt4oStages},
	"kanana2":    {stages: gpt4oStages},
	"talkie":     {stages: gpt4oStages},
	"minimax-m2": {stages: gpt4oStages},
	"tekken":     {stages: tekkenStages, ignoreMerges: true, addBOS: true},
	"kimi-k2":    {stages: kimiStages},
	"exaone-moe": {stages: exaoneMoEStages},
	"youtu":      {stages: youtuStages, ignoreMerges: true},
	"tiny_aya":   {stages: tinyAyaStages},
	"cohere2moe": {stages: tinyAyaStages},
	"longcat":    {stages: longcatStages},
	"superbpe":   {stages: superBPEStages},
	"laguna":     {stages: lagunaStages},
	"ufakzeka":   {stages: ufakzekaStages},
	"k2-horizon": {stages: k2HorizonStages},
	"spark2_5":   {stages: spark25Stages},

	"gpt-2":           {stages: gpt2Stages},
	"phi-2":           {stages: gpt2Stages},
	"mpt":             {stages: gpt2Stages, nfc: true},
	"olmo":            {stages: gpt2Stages, nfc: true},
	"jais":            {stages: gpt2Stages},
	"gigachat":        {stages: gpt2Stages},
	"a.x-4.0":         {stages: gpt2Stages},
	"mellum":          {stages: gpt2Stages},
	"exaone4":         {stages: gpt2Stages},
	"trillion":        {stages: gpt2Stages},
	"granite-docling": {stages: gpt2Stages},

	"smollm":     {stages: digitsStages, mayLack: smolLMLacks},
	"starcoder":  {stages: digitsStages},
	"refact":     {stages: digitsStages},
	"command-r":  {stages: digitsStages, nfc: true},
	"codeshell":  {stages: digitsStages},
	"exaone":     {stages: digitsStages},
	"minerva-7b": {stages: digitsStages},
	"mellum2":    {stages: digitsStages},

	"deepseek-v3":    {stages: deepseek3Stages},
	"hunyuan-dense":  {stages: deepseek3Stages},
	"joyai-llm":      {stages: deepseek3Stages},
	"hy_v4":          {stages: deepseek3Stages},
	"deepseek-llm":   {stages: deepseekLLMStages},
	"deepseek-coder": {stages: deepseekCoderStages},
	"falcon":         {stages: falconStages},
	"default":        {stages: defaultStages},
	"bloom":          {stages: bloomStages},
	"poro-chat":      {stages: bloomStages},
	"gpt3-finnish":   {stages: bloomStages},
	"viking":         {stages: vikingStages},
}

// Rules returns the names of the pre-tokenizers that [New] accepts in
// tokenizer.ggml.pre, sorted.
func Rules() []string {
	names := make([]string, 0, len(rules))
	for name := range rules {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
