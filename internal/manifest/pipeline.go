package manifest

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Pipeline is a CI workflow that has a job which deploys.
type Pipeline struct {
	Position
	// Job deploys, and Cancelled says that a newer run cancels it while it does, with the words for where that is set.
	Job       string
	Cancelled string
	// Comments are those of the document, for excuses.
	Comments []string
}

// deploys matches a command that changes a cluster.
var deploys = regexp.MustCompile(`\b(helm\s+(upgrade|install|rollback|uninstall)|helmfile\s+(apply|sync)|kubectl\s+(\S+\s+)*(apply|create|replace|patch|set|rollout)|` +
	`kustomize\s+build.*kubectl|kapp\s+deploy|skaffold\s+(run|deploy)|argocd\s+app\s+sync|flux\s+reconcile|terraform\s+apply|tofu\s+apply|pulumi\s+up)\b`)

// guarded matches one that is run under guard, which records an interrupted deploy.
var guarded = regexp.MustCompile(`\btidemark\s+guard\b`)

// pipelineOf finds a deploying job that a newer run cancels; nil where the document is no CI workflow or has no such job.
func pipelineOf(at Position, d document, n *yaml.Node, m map[string]any) *Pipeline {
	var p *Pipeline
	jobs, isMap := m["jobs"].(map[string]any)
	switch {
	case isMap && (m["on"] != nil || m["true"] != nil):
		p = github(m, jobs)
		n = field(n, "jobs")
	case strings.HasPrefix(path.Base(at.File), ".gitlab-ci"), m["stages"] != nil:
		p = gitlab(m)
	default:
		return nil
	}
	p.Position = at
	if p.Job != "" && n != nil {
		for _, k := range n.Content {
			if k.Value == p.Job {
				p.Line += k.Line - 1
				break
			}
		}
	}
	for line := range strings.Lines(d.text) {
		if _, comment, found := strings.Cut(line, "#"); found {
			p.Comments = append(p.Comments, strings.TrimSpace(comment))
		}
	}
	return p
}

// github looks through a workflow of GitHub Actions.
func github(m, jobs map[string]any) *Pipeline {
	p := &Pipeline{}
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		job := object(jobs, name)
		where := ""
		switch {
		case cancels(job["concurrency"]):
			where = "concurrency.cancel-in-progress of the job"
		case cancels(m["concurrency"]):
			where = "concurrency.cancel-in-progress of the workflow"
		}
		if where != "" && slices.ContainsFunc(steps(job), isDeploy) {
			p.Job, p.Cancelled = name, where
			return p
		}
	}
	return p
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

// steps gives the commands of a job's steps, and the actions that they use.
func steps(job map[string]any) []string {
	var out []string
	list, _ := job["steps"].([]any)
	for _, s := range list {
		step, _ := s.(map[string]any)
		out = append(out, text(step, "run"))
		if uses := text(step, "uses"); strings.Contains(uses, "helm-deploy") || strings.Contains(uses, "k8s-deploy") {
			out = append(out, "helm upgrade")
		}
	}
	return out
}

// gitlab looks through a pipeline of GitLab CI.
func gitlab(m map[string]any) *Pipeline {
	p := &Pipeline{}
	defaults, _ := object(m, "default")["interruptible"].(bool)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		job := object(m, name)
		interruptible, set := job["interruptible"].(bool)
		if !set {
			interruptible = defaults
		}
		if interruptible && slices.ContainsFunc(lines(job["script"]), isDeploy) {
			p.Job, p.Cancelled = name, "interruptible"
			return p
		}
	}
	return p
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

func isDeploy(command string) bool {
	return deploys.MatchString(command) && !guarded.MatchString(command)
}
