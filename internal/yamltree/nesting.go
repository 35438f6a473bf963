package yamltree

// Nesting is how deep brackets of two sorts nest at most in a text of any language, its strings and comments not told apart. It
// bounds the recursion of parsers that have no bound of their own.
func Nesting(text string, opening, closing [2]byte) int {
	depth, deepest := 0, 0
	for i := range len(text) {
		switch text[i] {
		case opening[0], opening[1]:
			depth++
			deepest = max(deepest, depth)
		case closing[0], closing[1]:
			depth = max(0, depth-1)
		}
	}
	return deepest
}
