// Package helmrecord reads what Helm's records of releases say: in their metadata, in their payload.
//
// A record is a Secret or a ConfigMap, one for each revision of a release.
package helmrecord

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/release"
)

// SecretType is the type of the Secrets in which Helm keeps its records.
const SecretType corev1.SecretType = "helm.sh/release.v1"

// Annotations by which Helm marks what belongs to a release.
const (
	AnnotationReleaseName      = "meta.helm.sh/release-name"
	AnnotationReleaseNamespace = "meta.helm.sh/release-namespace"
)

// Labels of a record.
const (
	labelOwner   = "owner"
	labelName    = "name"
	labelVersion = "version"
	// LabelStatus says the same as the payload, which is what Helm goes by.
	LabelStatus = "status"

	owner = "helm"
)

// Labels are those of every record, or of every one of a release where its name is given.
func Labels(name string) map[string]string {
	l := map[string]string{labelOwner: owner}
	if name != "" {
		l[labelName] = name
	}
	return l
}

// Unsettled selects the records of revisions that are not settled, with those whose label does not tell.
func Unsettled() labels.Selector {
	is, _ := labels.NewRequirement(labelOwner, selection.Equals, []string{owner})
	settled, _ := labels.NewRequirement(LabelStatus, selection.NotIn, []string{
		string(release.Deployed), string(release.Superseded), string(release.Failed), string(release.Uninstalled),
	})
	return labels.NewSelector().Add(*is, *settled)
}

// recordName is how Helm names its records.
var recordName = regexp.MustCompile(`^sh\.helm\.release\.v1\.(.+)\.v([0-9]+)$`)

// Decode reads the metadata of a record that is an object of the kind. The name of the release is also given with an error, where
// the record has one.
func Decode(kind string, m metav1.Object) (name string, r release.Revision, err error) {
	text := m.GetLabels()
	name = text[labelName]
	named := recordName.FindStringSubmatch(m.GetName())
	if name == "" && named != nil {
		name = named[1]
	}
	number, parseErr := strconv.ParseInt(text[labelVersion], 10, 64)
	switch {
	case text[labelName] == "":
		err = fmt.Errorf("label %q is missing", labelName)
	case parseErr != nil || number < 1:
		err = fmt.Errorf("label %q is %q, which is no revision", labelVersion, text[labelVersion])
	case len(named) == 3 && named[2] != text[labelVersion]:
		err = fmt.Errorf("label %q is %q, its name says %s", labelVersion, text[labelVersion], named[2])
	case text[LabelStatus] == "":
		err = fmt.Errorf("label %q is missing", LabelStatus)
	}
	recovered, _ := time.Parse(time.RFC3339, m.GetAnnotations()[v1.AnnotationRecovered]) // what somebody broke tells nothing
	return name, release.Revision{
		Record: m.GetName(), Kind: kind, ResourceVersion: m.GetResourceVersion(), Number: number,
		Status: release.Status(text[LabelStatus]), Created: m.GetCreationTimestamp().Time, Written: Written(m), Deploy: text[v1.LabelDeploy],
		Recovered: recovered,
	}, err
}

// Written is when an object was last written, by the API server's clock; zero when nothing tells.
func Written(m metav1.Object) time.Time {
	var last time.Time
	for _, f := range m.GetManagedFields() {
		if f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}
