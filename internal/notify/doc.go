// Package notify tells people what calls for their attention.
//
// A caller states what holds, under a key that stays the same for as long as it does; this package sees to it that each
// destination hears of it once when it begins, and once when it ends: over restarts and changes of leader, and however often a
// receiver fails. docs/design/0014-notifications.md has the reasons.
package notify
