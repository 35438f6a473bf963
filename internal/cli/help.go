package cli

import "strings"

// fill makes a help text: without the indentation of its source, and with the name by which the program was called in
// place of each leading "tidemark" of a command.
func fill(name, text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, l := range lines {
		l = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(l, "\t"), "\t"), "\t")
		trimmed := strings.TrimLeft(l, " ")
		if rest, ok := strings.CutPrefix(trimmed, "tidemark "); ok {
			l = l[:len(l)-len(trimmed)] + name + " " + rest
		}
		lines[i] = l
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\t\n ")
}

// examples makes the text of examples, indented as cobra has them.
func examples(name, text string) string {
	lines := strings.Split(fill(name, text), "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = "  " + l
		}
	}
	return strings.Join(lines, "\n")
}
