package manifest

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"tidemark.dev/tidemark/internal/yamltree"
)

// deploying are the commands that change what runs in a cluster, by their programs: the first words that are no flags.
var deploying = map[string][]string{
	"helm":     {"upgrade", "install", "rollback", "uninstall", "delete", "del", "un", "secrets upgrade", "secrets install"},
	"helmfile": {"apply", "sync"},
	"kubectl": {
		"apply", "create", "replace", "patch", "set", "rollout restart", "rollout undo", "rollout pause", "rollout resume",
		"argo rollouts promote", "argo rollouts set", "argo rollouts undo", "argo rollouts restart", "argo rollouts abort",
	},
	"kapp":      {"deploy"},
	"skaffold":  {"run", "deploy"},
	"argocd":    {"app sync", "app rollback", "app set"},
	"flux":      {"reconcile"},
	"terraform": {"apply"},
	"tofu":      {"apply"},
	"pulumi":    {"up"},
}

// alike are programs that take the commands of another.
var alike = map[string]string{"oc": "kubectl", "kubecolor": "kubectl", "helm3": "helm"}

// valued are the flags before a command whose value is the next word.
var valued = []string{
	"-n", "--namespace", "--context", "--kube-context", "--kubeconfig", "--cluster", "--user", "-s", "--server", "--token", "--as", "--as-group",
	"--kube-apiserver", "--kube-token", "--kube-as-user", "--kube-as-group", "--kube-ca-file", "--registry-config", "--repository-config",
	"--request-timeout", "-v", "--loglevel", "-e", "--environment", "-f", "--file", "-l", "--selector", "-C", "--cwd", "--stack", "-p", "--profile",
}

// talkers are programs whose words are said rather than done.
var talkers = []string{"echo", "printf", "grep", "which", "command", "type", "git", "gh"}

// evaluators are programs that do what a word with blanks in it says; so does a shell's flag -c.
var evaluators = []string{"eval", "ssh", "retry"}

// Bounds of a script, which is not looked into beyond them. Parsing is recursive, and so is looking into words that are scripts by
// themselves.
const (
	maxScript  = 32 << 10 // bytes
	maxNesting = 200
	maxScripts = 3
)

// expression matches what the CI system puts in before a shell sees it.
var expression = regexp.MustCompile(`\$\{\{.*?\}\}`)

// deploys reports whether a script has a command that changes a cluster and is not run under guard, which records an interrupted deploy.
func deploys(script string) bool { return deploysWithin(script, maxScripts) }

func deploysWithin(script string, scripts int) bool {
	if scripts == 0 || len(script) > maxScript || yamltree.Nesting(script, [2]byte{'(', '{'}, [2]byte{')', '}'}) > maxNesting {
		return false
	}
	script = expression.ReplaceAllString(script, "expression")
	found, err := deploysInShell(script, scripts)
	if err != nil && !found { // another language, or half of one: what its lines say by themselves
		for line := range strings.Lines(script) {
			inLine, _ := deploysInShell(line, scripts) // the rest of a line that is no command either
			found = found || inLine
		}
	}
	return found
}

func deploysInShell(script string, scripts int) (found bool, err error) {
	for s, err := range syntax.NewParser().StmtsSeq(strings.NewReader(script)) {
		if err != nil {
			return false, err
		}
		syntax.Walk(s, func(n syntax.Node) bool {
			call, is := n.(*syntax.CallExpr)
			if !is {
				return !found
			}
			words := wordsOf(call)
			if isGuarded(words) {
				return false
			}
			found = found || isDeploy(words, scripts)
			return !found
		})
		if found {
			return true, nil
		}
	}
	return false, nil
}

// wordsOf are the words of a command as far as they stand there; what is put in when it runs is "$".
func wordsOf(call *syntax.CallExpr) []string {
	var out []string
	for _, w := range call.Args {
		out = append(out, literal(w.Parts))
	}
	return out
}

func literal(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(literal(p.Parts))
		default:
			b.WriteByte('$')
		}
	}
	return b.String()
}

// isGuarded reports whether a command is run by tidemark guard.
func isGuarded(words []string) bool {
	i := slices.IndexFunc(words, func(w string) bool { return path.Base(w) == "tidemark" || path.Base(w) == "kubectl-tidemark" })
	return i >= 0 && slices.Contains(words[i:], "guard")
}

func isDeploy(words []string, scripts int) bool {
	if len(words) == 0 || slices.Contains(talkers, path.Base(words[0])) {
		return false
	}
	for i, w := range words {
		if strings.ContainsAny(w, " \n") && isScript(words, i) && deploysWithin(w, scripts-1) {
			return true
		}
		program, _, _ := strings.Cut(path.Base(w), ":") // of an image it is the name
		if other, is := alike[program]; is {
			program = other
		}
		if commands := deploying[program]; commands != nil {
			return isOneOf(commands, words[i+1:])
		}
	}
	return false
}

// isScript reports whether a word is run as a script of its own.
func isScript(words []string, i int) bool {
	return slices.Contains(evaluators, path.Base(words[0])) ||
		i > 0 && strings.HasPrefix(words[i-1], "-") && !strings.HasPrefix(words[i-1], "--") && strings.HasSuffix(words[i-1], "c")
}

// isOneOf reports whether the words after a program's name are one of its commands, done in earnest.
func isOneOf(commands, words []string) bool {
	var verbs []string
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case strings.HasPrefix(w, "--dry-run") && w != "--dry-run=none" && w != "--dry-run=false", w == "--help":
			return false
		case slices.Contains(valued, w):
			i++
		case !strings.HasPrefix(w, "-"):
			verbs = append(verbs, w)
		}
	}
	said := strings.Join(verbs, " ") + " "
	return slices.ContainsFunc(commands, func(c string) bool { return strings.HasPrefix(said, c+" ") })
}
