package cluster

// The rights that mode pin needs besides those of the controller, from which `make generate` writes deploy/pin/role.yaml. An
// install without mode pin does not have them.

// Snapshots: made, found again, marked. That is a right on every ConfigMap and Secret, because names are not known before.
//+kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;create;patch

// Pods: watched for whether they read what their pins say. One of an older revision that a StatefulSet waits for in vain is deleted.
//+kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;delete

// The pause of a canary, which is ended where its Rollout asks for that (tidemark.dev/promote-after).
//+kubebuilder:rbac:groups=argoproj.io,resources=rollouts/status,verbs=patch

// The right that the policy on snapshots asks for: to make them, to mark them, to delete them.
//+kubebuilder:rbac:groups=tidemark.dev,resources=snapshots,verbs=create;retire
