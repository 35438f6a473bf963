package manifest

import (
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Pipeline is a CI workflow.
type Pipeline struct {
	Position
	// Deploys are the jobs that deploy and that a newer run cancels while they do, in the order of their names.
	Deploys []Deploy
}

// Deploy is a job that deploys.
type Deploy struct {
	Position
	Job string
	// Cancelled are the words for where it is set that a newer run cancels it.
	Cancelled string
	// Comments may excuse it: those that stand with the job, and those that stand with none.
	Comments []string
}

// pipelineOf reads a CI workflow; nil where the document is none.
func pipelineOf(at Position, d document, n *yaml.Node, m map[string]any) *Pipeline {
	p := &Pipeline{Position: at}
	jobs, isMap := m["jobs"].(map[string]any)
	switch {
	case isMap && (m["on"] != nil || m["true"] != nil):
		p.Deploys, n = github(m, jobs), field(n, "jobs")
	case strings.HasPrefix(path.Base(at.File), ".gitlab-ci"), m["stages"] != nil:
		p.Deploys, jobs = gitlab(m), m
	default:
		return nil
	}
	if len(p.Deploys) == 0 {
		return p
	}
	spans, comments := spansOf(n, jobs, d), commentsOf(d)
	for i := range p.Deploys {
		job := &p.Deploys[i]
		own, has := spans[job.Job]
		if job.Position = at; has {
			job.Line += own.key - 1
		}
		for line, comment := range comments {
			_, others := spans.at(line)
			if own.has(line) || !others {
				job.Comments = append(job.Comments, comment)
			}
		}
	}
	return p
}

// span are the lines of a job within its document, from 1: from the comments above its name up to the next one's.
type span struct{ begin, key, end int }

func (s span) has(line int) bool { return s.begin <= line && line < s.end }

type spans map[string]span

// at finds the job that a line belongs to.
func (s spans) at(line int) (string, bool) {
	for name, lines := range s {
		if lines.has(line) {
			return name, true
		}
	}
	return "", false
}

// spansOf finds the lines of jobs, which are fields of a node; of none where the node is not there, because it is merged in.
func spansOf(n *yaml.Node, jobs map[string]any, d document) spans {
	out := spans{}
	if n == nil {
		return out
	}
	lines := strings.Split(d.text, "\n")
	begin := func(key int) int {
		for key >= 2 && strings.HasPrefix(strings.TrimSpace(lines[key-2]), "#") {
			key--
		}
		return key
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if job, _ := jobs[key.Value].(map[string]any); job == nil || job["steps"] == nil && job["script"] == nil && job["uses"] == nil {
			continue
		}
		end := len(lines) + 1
		if i+2 < len(n.Content) {
			end = begin(n.Content[i+2].Line)
		} else if after := outdented(lines, key); after > 0 {
			end = begin(after)
		}
		out[key.Value] = span{begin(key.Line), key.Line, end}
	}
	return out
}

// outdented is the first line after a key that stands further left and is no comment; 0 where there is none.
func outdented(lines []string, key *yaml.Node) int {
	for i := key.Line; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], " ")
		if strings.TrimSpace(text) != "" && text[0] != '#' && len(lines[i])-len(text)+1 < key.Column {
			return i + 1
		}
	}
	return 0
}

// commentsOf are the comments of a document by their lines.
func commentsOf(d document) map[int]string {
	out := map[int]string{}
	line := 0
	for text := range strings.Lines(d.text) {
		line++
		if _, comment, found := strings.Cut(text, "#"); found {
			out[line] = strings.TrimSpace(comment)
		}
	}
	return out
}

// github looks through a workflow of GitHub Actions.
func github(m, jobs map[string]any) []Deploy {
	var out []Deploy
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		job := object(jobs, name)
		where := ""
		switch {
		case cancels(job["concurrency"]):
			where = "concurrency.cancel-in-progress of the job"
		case cancels(m["concurrency"]):
			where = "concurrency.cancel-in-progress of the workflow"
		}
		if where != "" && deploysInSteps(job) {
			out = append(out, Deploy{Job: name, Cancelled: where})
		}
	}
	return out
}

func cancels(concurrency any) bool {
	c, _ := concurrency.(map[string]any)
	switch v := c["cancel-in-progress"].(type) {
	case bool:
		return v
	case string:
		return strings.Contains(v, "${{") // an expression: at times it does
	}
	return false
}

// deploysInSteps looks through the commands of a job's steps, and the actions that they use.
func deploysInSteps(job map[string]any) bool {
	list, _ := job["steps"].([]any)
	return slices.ContainsFunc(list, func(s any) bool {
		step, _ := s.(map[string]any)
		uses := text(step, "uses")
		return strings.Contains(uses, "helm-deploy") || strings.Contains(uses, "k8s-deploy") || deploys(text(step, "run"))
	})
}

// gitlab looks through a pipeline of GitLab CI.
func gitlab(m map[string]any) []Deploy {
	var out []Deploy
	defaults, _ := object(m, "default")["interruptible"].(bool)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		job := object(m, name)
		interruptible, set := job["interruptible"].(bool)
		if !set {
			interruptible = defaults
		}
		if interruptible && deploys(strings.Join(slices.Concat(lines(job["before_script"]), lines(job["script"])), "\n")) {
			out = append(out, Deploy{Job: name, Cancelled: "interruptible"})
		}
	}
	return out
}

func lines(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, lines(e)...)
		}
		return out
	}
	return nil
}
