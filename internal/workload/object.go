// Package workload reads from a pod template which configuration it uses, alike for every kind of workload.
package workload

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ObjectKind is the kind of a config object.
type ObjectKind string

// The kinds of config objects.
const (
	ConfigMap ObjectKind = "ConfigMap"
	Secret    ObjectKind = "Secret"
)

// Object identifies a config object: a ConfigMap or a Secret of one namespace.
type Object struct {
	Kind      ObjectKind
	Namespace string
	Name      string
}

// String gives "configmap/NAMESPACE/NAME", which [ParseObject] reads back.
func (o Object) String() string {
	return strings.ToLower(string(o.Kind)) + "/" + o.Namespace + "/" + o.Name
}

// Relative gives "configmap/NAME" for an object of the namespace, and [Object.String] for any other.
func (o Object) Relative(namespace string) string {
	if o.Namespace == namespace {
		return strings.ToLower(string(o.Kind)) + "/" + o.Name
	}
	return o.String()
}

// ParseObject reads what [Object.String] or [Object.Relative] wrote. A name without a namespace is one of the given
// namespace. Names that no object can have are errors.
func ParseObject(s, namespace string) (Object, error) {
	kind, rest, ok := strings.Cut(s, "/")
	o := Object{Namespace: namespace, Name: rest}
	if ns, name, qualified := strings.Cut(rest, "/"); qualified {
		o.Namespace, o.Name = ns, name
	}
	switch kind {
	case "configmap":
		o.Kind = ConfigMap
	case "secret":
		o.Kind = Secret
	default:
		ok = false
	}
	if !ok || !validName(o.Name) || !validNamespace(o.Namespace) {
		return Object{}, fmt.Errorf("parse object %q: want configmap/NAME, secret/NAME or KIND/NAMESPACE/NAME", s)
	}
	return o, nil
}

// Compare orders objects by kind, namespace and name.
func (o Object) Compare(p Object) int {
	return cmp.Or(cmp.Compare(o.Kind, p.Kind), cmp.Compare(o.Namespace, p.Namespace), cmp.Compare(o.Name, p.Name))
}

// isClusterTrust says that the object is the cluster's own trust bundle, which is never configuration.
func (o Object) isClusterTrust() bool { return o.Kind == ConfigMap && o.Name == clusterTrust }

func validName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

func validNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }
