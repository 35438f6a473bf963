package manifest

import "strings"

// Kind is a kind of object with a pod template.
type Kind struct {
	Group, Kind string
	// TemplatePath are the fields that lead to the pod template; none for a Pod, which is one.
	TemplatePath []string
	// Once says that its pods are never replaced by those of an older template: of a Job, a CronJob, a Pod.
	Once bool
}

func (k Kind) lower() string { return strings.ToLower(k.Kind) }

func (k Kind) sameAs(o Kind) bool { return k.Group == o.Group && k.Kind == o.Kind }

// Kinds are those that are known without being told.
func Kinds() []Kind {
	template := []string{"spec", "template"}
	return []Kind{
		{Group: "apps", Kind: "Deployment", TemplatePath: template},
		{Group: "apps", Kind: "StatefulSet", TemplatePath: template},
		{Group: "apps", Kind: "DaemonSet", TemplatePath: template},
		{Group: "argoproj.io", Kind: "Rollout", TemplatePath: template},
		{Group: "batch", Kind: "Job", TemplatePath: template, Once: true},
		{Group: "batch", Kind: "CronJob", TemplatePath: []string{"spec", "jobTemplate", "spec", "template"}, Once: true},
		{Kind: "Pod", Once: true},
	}
}
