package cli

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"tidemark.dev/tidemark/internal/cluster"
)

// selection is what the arguments of a verb name.
type selection struct {
	kinds   []cluster.Kind
	targets []cluster.Target
}

// selectWorkloads reads arguments of the form KIND/NAME…, KIND NAME…, or KIND for all of a kind. Without arguments it
// selects every kind.
func selectWorkloads(args []string, namespace string, kinds []cluster.Kind, mapper func() (meta.RESTMapper, error)) (selection, error) {
	if len(args) == 0 {
		return selection{kinds: kinds}, nil
	}
	if !strings.Contains(args[0], "/") {
		return selectOfKind(args, namespace, kinds, mapper)
	}
	s := selection{kinds: kinds}
	for _, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
			return selection{}, usagef("%q names no workload: write KIND/NAME, such as deployment/web", arg)
		}
		k, err := cluster.FindKind(kinds, kind, mapper)
		if err != nil {
			return selection{}, err
		}
		s.targets = append(s.targets, cluster.Target{Kind: k, Namespace: namespace, Name: name})
	}
	return s, nil
}

func selectOfKind(args []string, namespace string, kinds []cluster.Kind, mapper func() (meta.RESTMapper, error)) (selection, error) {
	k, err := cluster.FindKind(kinds, args[0], mapper)
	if err != nil {
		if len(args) == 1 {
			return selection{}, usagef("%w; a workload is named KIND/NAME, such as deployment/%s", err, args[0])
		}
		return selection{}, err
	}
	s := selection{kinds: []cluster.Kind{k}}
	for _, name := range args[1:] {
		if name == "" || strings.Contains(name, "/") {
			return selection{}, usagef("%q names no workload beside the kind %s: write names alone, or KIND/NAME throughout", name, args[0])
		}
		s.targets = append(s.targets, cluster.Target{Kind: k, Namespace: namespace, Name: name})
	}
	return s, nil
}
