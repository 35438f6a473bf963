package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"tidemark.dev/tidemark/internal/digest"
	"tidemark.dev/tidemark/internal/fleet"
	"tidemark.dev/tidemark/internal/workload"
)

// maxFiles bounds how many files of one container are read.
const maxFiles = 100

// Look is a look into a running container of a pod: at the environment of its process, and at the files that show ConfigMaps.
// Variables and files of Secrets are not kept, and no value leaves it: what was found is given as sums.
type Look struct {
	// Run runs a command in a container of the pod.
	Run func(ctx context.Context, container string, command ...string) ([]byte, error)
	Pod *corev1.Pod
	// Source is the object that a name in the pod's spec stands for: a snapshot's source, else the object itself.
	Source func(container string, o workload.Object) workload.Object
	// Keys are the keys that an object has, or had.
	Keys func(o workload.Object) []string
}

// Into looks into a container. Only a right that is missing, or an end of the context, is an error.
func (l Look) Into(ctx context.Context, c *corev1.Container) (fleet.Looked, error) {
	found := map[workload.Object]*fleet.ReportedObject{}
	var out fleet.Looked
	env, why, err := l.environment(ctx, c)
	if err != nil {
		return out, err
	}
	if out.NoEnv = why; why == "" {
		l.variables(c, env, found)
	}
	if out.NoFiles, err = l.files(ctx, c, found); err != nil {
		return out, err
	}
	for _, o := range slices.SortedFunc(maps.Keys(found), workload.Object.Compare) {
		out.Objects = append(out.Objects, *found[o])
	}
	return out, nil
}

// found is the entry of the object that a reference of the spec names.
func (l Look) found(in map[workload.Object]*fleet.ReportedObject, container, name string) *fleet.ReportedObject {
	o := l.Source(container, workload.Object{Kind: workload.ConfigMap, Namespace: l.Pod.Namespace, Name: name})
	if in[o] == nil {
		in[o] = &fleet.ReportedObject{Object: o, Env: map[string]fleet.ReportedKey{}, Files: map[string]fleet.ReportedKey{}}
	}
	return in[o]
}

// environ is an environment. Of a variable that is unclear, the value is not known.
type environ struct {
	values  map[string]string
	unclear map[string]bool
}

// environment reads the environment of the container's first process, and the one that the container gives to any: programs may
// overwrite the memory that the first is read from, so that a variable counts only where the two agree, or one is not to be had.
func (l Look) environment(ctx context.Context, c *corev1.Container) (env environ, why string, err error) {
	readings := [][][]string{{{"cat", "/proc/1/environ"}}, {{"env", "-0"}, {"env"}}}
	if l.Pod.Spec.ShareProcessNamespace != nil && *l.Pod.Spec.ShareProcessNamespace {
		readings = readings[1:] // the first process is not the container's
	}
	var read []environ
	last := errors.New("they print nothing")
	for _, commands := range readings {
		for _, command := range commands {
			printed, err := l.Run(ctx, c.Name, command...)
			if fatal(ctx, err) {
				return environ{}, "", err
			}
			if err != nil {
				last = err
			} else if env := parseEnvironment(printed); len(env.values) > 0 {
				read = append(read, env)
				break
			}
		}
	}
	if len(read) == 0 {
		return environ{}, "neither cat nor env tells the environment: " + last.Error(), nil
	}
	env = read[0]
	for _, other := range read[1:] {
		maps.Copy(env.unclear, other.unclear)
		for name, value := range other.values {
			if env.values[name] != value {
				env.unclear[name] = true
			}
		}
	}
	return env, "", nil
}

// parseEnvironment reads variables that end with a zero byte each or, where there is none, with a line: then one whose value goes
// on in the next line is unclear.
func parseEnvironment(printed []byte) environ {
	separator, lines := []byte{0}, false
	if !bytes.Contains(printed, separator) {
		separator, lines = []byte("\n"), true
	}
	out := environ{map[string]string{}, map[string]bool{}}
	last := ""
	for entry := range bytes.SplitSeq(bytes.TrimSuffix(printed, separator), separator) {
		name, value, ok := strings.Cut(string(entry), "=")
		switch {
		case ok && name != "" && !strings.ContainsAny(name, " \t"):
			out.values[name], last = value, name
		case lines:
			out.unclear[last] = true
		}
	}
	return out
}

// fatal reports whether an error ends the look: the right is missing, or nobody waits any more.
func fatal(ctx context.Context, err error) bool {
	var forbidden *ForbiddenExecError
	return errors.As(err, &forbidden) || err != nil && ctx.Err() != nil
}

// variables notes the keys whose variables surely come from them.
func (l Look) variables(c *corev1.Container, env environ, found map[workload.Object]*fleet.ReportedObject) {
	for name, from := range l.origins(c) {
		if from.unclear || env.unclear[name] {
			continue
		}
		value, there := env.values[name]
		if !there && len(validation.IsCIdentifier(name)) > 0 {
			continue // of which some kubelets make no variable
		}
		o := l.found(found, c.Name, from.object)
		k := fleet.ReportedKey{There: there}
		if there {
			k.Sum = sumOf(o.Object, from.key, []byte(value))
		}
		o.Env[from.key] = k
	}
}

// origin is the key of a ConfigMap by which a container gets a variable.
type origin struct {
	object, key string
	// unclear says that another source may have given the variable.
	unclear bool
}

// origins are those of a container's variables, by their names. A variable comes from the last of the container's sources that gives it.
// Of what one may have given, and another as well, it is not known which it was: the keys of a ConfigMap are those that it ever had, and
// those of a Secret are not read.
func (l Look) origins(c *corev1.Container) map[string]origin {
	out := map[string]origin{}
	var secrets []string // prefixes of what Secrets may give
	// gives notes a source that need not have given the variable.
	gives := func(name, object, key string) {
		_, before := out[name]
		secret := slices.ContainsFunc(secrets, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		out[name] = origin{object, key, before || secret}
	}
	for _, from := range c.EnvFrom {
		switch {
		case from.SecretRef != nil:
			secrets = append(secrets, from.Prefix)
			for name, by := range out {
				by.unclear = by.unclear || strings.HasPrefix(name, from.Prefix)
				out[name] = by
			}
		case from.ConfigMapRef != nil:
			o := l.Source(c.Name, workload.Object{Kind: workload.ConfigMap, Namespace: l.Pod.Namespace, Name: from.ConfigMapRef.Name})
			for _, key := range l.Keys(o) {
				gives(from.Prefix+key, from.ConfigMapRef.Name, key)
			}
		}
	}
	for _, e := range c.Env {
		var ref *corev1.ConfigMapKeySelector
		if e.ValueFrom != nil {
			ref = e.ValueFrom.ConfigMapKeyRef
		}
		switch {
		case ref == nil: // a value of its own, or what somebody else gives
			delete(out, e.Name)
		case ptr.Deref(ref.Optional, false):
			gives(e.Name, ref.Name, ref.Key)
		default:
			out[e.Name] = origin{ref.Name, ref.Key, false}
		}
	}
	return out
}

func sumOf(o workload.Object, key string, value []byte) digest.Sum {
	return digest.OfConfigMap(o.Namespace, o.Name, nil, map[string][]byte{key: value}).Binary[key]
}

// file is one key of a ConfigMap that a container sees as a file.
type file struct {
	object, key, path string
}

// files reads the files of a container that show ConfigMaps; why says that some could not be read.
func (l Look) files(ctx context.Context, c *corev1.Container, found map[workload.Object]*fleet.ReportedObject) (why string, err error) {
	files := l.filesOf(c)
	if len(files) > maxFiles {
		why, files = fmt.Sprintf("it has more than %d files", maxFiles), files[:maxFiles]
	}
	for _, f := range files {
		content, err := l.Run(ctx, c.Name, "cat", f.path)
		if fatal(ctx, err) {
			return "", err
		}
		if err != nil {
			why = fmt.Sprintf("cat %s fails: %v", f.path, err)
			continue
		}
		o := l.found(found, c.Name, f.object)
		o.Files[f.key] = fleet.ReportedKey{There: true, Sum: sumOf(o.Object, f.key, content)}
	}
	return why, nil
}

// filesOf lists the files of a container that show keys of ConfigMaps, from its mounts of ConfigMaps and of projected volumes.
func (l Look) filesOf(c *corev1.Container) []file {
	var out []file
	for _, mount := range c.VolumeMounts {
		for i := range l.Pod.Spec.Volumes {
			v := &l.Pod.Spec.Volumes[i]
			if v.Name != mount.Name {
				continue
			}
			if v.ConfigMap != nil {
				out = append(out, l.shownIn(c.Name, mount, v.ConfigMap.Name, v.ConfigMap.Items)...)
			}
			if v.Projected == nil {
				continue
			}
			for _, s := range v.Projected.Sources {
				if s.ConfigMap != nil {
					out = append(out, l.shownIn(c.Name, mount, s.ConfigMap.Name, s.ConfigMap.Items)...)
				}
			}
		}
	}
	return out
}

// shownIn lists the files that one mount shows of a ConfigMap.
func (l Look) shownIn(container string, mount corev1.VolumeMount, name string, items []corev1.KeyToPath) []file {
	if len(items) == 0 {
		o := l.Source(container, workload.Object{Kind: workload.ConfigMap, Namespace: l.Pod.Namespace, Name: name})
		for _, key := range l.Keys(o) {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	var out []file
	for _, item := range items {
		shown := path.Clean(item.Path)
		switch sub := path.Clean(mount.SubPath); {
		case mount.SubPathExpr != "":
			continue
		case mount.SubPath == "":
			shown = path.Join(mount.MountPath, shown)
		case sub == shown:
			shown = mount.MountPath
		case strings.HasPrefix(shown, sub+"/"):
			shown = path.Join(mount.MountPath, strings.TrimPrefix(shown, sub+"/"))
		default:
			continue
		}
		out = append(out, file{name, item.Key, shown})
	}
	return out
}
