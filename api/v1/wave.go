package v1

// Annotations of Wave (wave.pusher.com) that Tidemark honours, as observed in Wave 0.11, so that its users can switch without touching a manifest.
const (
	// WaveOptIn, when "true" on a workload without a mode of Tidemark's, means mode roll.
	WaveOptIn = "wave.pusher.com/update-on-config-change"
	// WaveExtraConfigMaps is read like [AnnotationExtraConfigMaps].
	WaveExtraConfigMaps = "wave.pusher.com/extra-configmaps"
	// WaveExtraSecrets is read like [AnnotationExtraSecrets].
	WaveExtraSecrets = "wave.pusher.com/extra-secrets"
	// WaveSchedulingDisabled is on a workload that Wave's webhook kept from starting pods when it was created, because
	// something that they require was missing: the scheduler's name that it replaced by [WaveSchedulerInvalid]. When nothing
	// is missing any more, the name is put back and the annotation removed.
	WaveSchedulingDisabled = "wave.pusher.com/scheduling-disabled"
)

// WaveSchedulerInvalid is the name of a scheduler that does not exist, in a pod template whose pods Wave kept from starting.
const WaveSchedulerInvalid = "wave.pusher.com/invalid"
