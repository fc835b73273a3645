package fault

// The codes. A constant's name is its code without the dash. Every constant has exactly one row in
// the catalogue below, and every row is raised somewhere; catalogue_test.go checks both.
const (
	LOD001 Code = "LOD-001"
	LOD002 Code = "LOD-002"
	LOD011 Code = "LOD-011"
	LOD012 Code = "LOD-012"
	LOD013 Code = "LOD-013"
	LOD016 Code = "LOD-016"
	LOD025 Code = "LOD-025"

	MAN001 Code = "MAN-001"
	MAN002 Code = "MAN-002"
	MAN003 Code = "MAN-003"
	MAN004 Code = "MAN-004"
	MAN005 Code = "MAN-005"
	MAN006 Code = "MAN-006"
	MAN007 Code = "MAN-007"

	TRF001 Code = "TRF-001"
	TRF002 Code = "TRF-002"
	TRF003 Code = "TRF-003"
	TRF004 Code = "TRF-004"
	TRF020 Code = "TRF-020"
	TRF021 Code = "TRF-021"
	TRF022 Code = "TRF-022"
	TRF023 Code = "TRF-023"

	ENV001 Code = "ENV-001"
	ENV002 Code = "ENV-002"
	ENV003 Code = "ENV-003"
	ENV004 Code = "ENV-004"
	ENV005 Code = "ENV-005"
	ENV006 Code = "ENV-006"
	ENV007 Code = "ENV-007"
	ENV008 Code = "ENV-008"
	ENV009 Code = "ENV-009"
	ENV010 Code = "ENV-010"

	GEN001 Code = "GEN-001"
	GEN002 Code = "GEN-002"
	GEN003 Code = "GEN-003"
	GEN004 Code = "GEN-004"
	GEN005 Code = "GEN-005"
	GEN006 Code = "GEN-006"
	GEN007 Code = "GEN-007"

	EVD001 Code = "EVD-001"
	EVD002 Code = "EVD-002"
	EVD003 Code = "EVD-003"

	CLI001 Code = "CLI-001"
	CLI002 Code = "CLI-002"
	CLI003 Code = "CLI-003"
	CLI004 Code = "CLI-004"
)

var catalogue = [...]Entry{
	{CLI001, Usage, "the command line is not understood",
		"A flag, an argument or a command is unknown, missing or malformed. Nothing was read or started.",
		"Run the command with --help; it shows a worked example."},
	{CLI002, Internal, "a defect of Seatrial",
		"Seatrial met a state that it should never reach. No verdict of this run can be relied on.",
		"Report it with the run folder; it holds no secret."},
	{CLI003, Cancelled, "cancelled",
		"An interrupt or a deadline ended the command. What was measured until then is in the run folder.",
		"Run the command again; the report of the part that ran is kept."},
	{CLI004, Usage, "there is no error code of that name",
		"explain was asked for a code or a word that the catalogue does not hold.",
		"Run `seatrial explain --codes` to list the codes."},
	{ENV001, Dependency, "there is nothing to bring up",
		"The manifest declares no service and no target, so there is no environment to send traffic at.",
		"Declare a service under `services:`, or list a loopback URL under `targets:`."},
	{ENV002, Dependency, "a service could not be built",
		"The build command of a service ended with an error. Its last lines are shown.",
		"Run the build command by hand in the project folder and mend what it reports."},
	{ENV003, Dependency, "a service ended before it was ready",
		"The service's process ended on its own while Seatrial was waiting for its health path.",
		"Read the log lines above; run the service by hand with the same command."},
	{ENV004, Dependency, "a service did not become ready",
		"The health path did not answer with a 2xx status within its timeout. Everything that was started has been taken down.",
		"Read the log lines above, or raise `health.timeout` of the service."},
	{ENV005, Dependency, "there is no such environment",
		"The ledger holds no environment of that name.",
		"Run `seatrial env list` to see those that exist."},
	{ENV006, Leftover, "tear-down left something behind",
		"A resource of the environment could not be removed. The journal keeps it, so that the next `env down` tries again.",
		"Run `seatrial env list` and `seatrial env down NAME`; remove by hand what is still named."},
	{ENV007, Dependency, "the environment is in use",
		"Another process of Seatrial holds the lock of this environment.",
		"Wait until it ends, or end the process that is named."},
	{ENV008, Dependency, "a revision could not be checked out",
		"git could not give a work tree of the revision that was asked for.",
		"Check the name with `git rev-parse`, and that the folder is a git repository."},
	{ENV009, Dependency, "the port of a service is taken",
		"A service declares a fixed port, and another process listens on it already.",
		"End that process, or remove `port` so that a free one is chosen."},
	{ENV010, Dependency, "the ledger of environments cannot be written",
		"Every resource is journalled under `.seatrial/environments` before it is made, so nothing is started without it.",
		"Free space, or make the project folder writable."},
	{EVD001, Dependency, "the evidence could not be written",
		"A file of the run folder could not be written, so there is no verdict.",
		"Free space or allow writing there, then run again; --run-dir puts run folders elsewhere."},
	{EVD002, Dependency, "there is no such run",
		"No run folder matches the name that was given.",
		"Run `seatrial report list` to see the runs."},
	{EVD003, Unproved, "the evidence is incomplete",
		"The run ended before it wrote its last file: it was killed, or the machine stopped.",
		"Read what is there with `seatrial report show`, and run again."},
	{GEN001, Unproved, "generator saturated",
		"The machine that sends could not keep to the schedule, so that the figures say as much about the generator as about the target.",
		"Lower the rate, or run on a quieter or larger machine."},
	{GEN002, Internal, "the account of requests does not balance",
		"Requests that were due are not all accounted for as answered, failed, timed out, abandoned, unsent or lost.",
		"Report it with the run folder; no verdict was given."},
	{GEN003, Unproved, "nothing was measured",
		"The run sent no request that could be judged: it was too short for its rate, or ended before its first judged request.",
		"Raise the duration or the rate."},
	{GEN004, Dependency, "the generator lacks a resource",
		"A limit of this machine (file descriptors, local ports) is lower than the run needs.",
		"Raise the limit that is named, or lower `max_connections`."},
	{GEN005, Unproved, "this run cannot tell",
		"The limit lies inside the interval of what was measured, or the sample is too small to have one. That is never a pass.",
		"Send for longer or at a higher rate, or run on a quieter machine."},
	{GEN006, Unproved, "nothing is enabled",
		"The command runs what the manifest enables, and it enables nothing. Nothing was run, so nothing was proved.",
		"Enable a part in the manifest, or ask for it by flag."},
	{GEN007, Unproved, "answers that nobody asked for",
		"More than 1% of the connections' answers were followed or preceded by bytes that belong to no request, so an answer may have been counted for a request that it does not belong to.",
		"Look at what the target writes beside its answers: a body behind a 204 or a HEAD, two answers to one request, a greeting."},
	{LOD001, Refused, "the target is not an environment this engine created",
		"Load goes to environments that Seatrial brought up itself, proved by the ledger and the service's own port, or to targets that the manifest lists. Nothing was sent.",
		"Run it against an environment (`seatrial env up`), or list a loopback URL under `targets:` with `max_rate`."},
	{LOD002, Check, "aborted: the error rate stayed over its limit",
		"More than the allowed share of requests failed for the whole abort window; the run ended early and what was measured is kept.",
		"Read the errors by class in the report, and `seatrial env logs`."},
	{LOD011, Check, "thresholds of the manifest were exceeded",
		"A declared limit was measured and did not hold. Every breach is listed with what was measured, its baseline and its limit.",
		"Open the report; it lists each breach with its interval."},
	{LOD012, Manifest, "there is no load source of that name",
		"`load.source` names something that this build cannot read.",
		"Use one of the sources that are listed."},
	{LOD013, Unproved, "filtering left no route to send",
		"`safe_routes` and `unsafe_routes` together removed every route of the traffic, or no value is known for the routes that remain.",
		"Name the routes that may be sent under `safe_routes`; after `seatrial traffic record --from FILE`, `seatrial traffic show` prints the lines."},
	{LOD016, Unproved, "p95_increase proved nothing",
		"The threshold is in force, but no route that the run sent has a baseline: none was seen 20 times or more with a duration.",
		"Point `source_config.path` at a longer export, or record a profile from one."},
	{LOD025, Dependency, "the traffic profile is older than max_age",
		"A profile that old no longer says what production serves; it is refused, not quoted.",
		"Record it again with `seatrial traffic record`, or raise `load.traffic.max_age`."},
	{MAN001, Manifest, "the manifest cannot be read",
		"There is no manifest at the place where it was looked for, or it cannot be opened.",
		"Run `seatrial init` to write one, or name its folder with -C."},
	{MAN002, Manifest, "the manifest is not valid YAML",
		"The YAML parser stopped at the place that is shown.",
		"Mend the line that is shown."},
	{MAN003, Manifest, "unknown key",
		"The manifest holds a key that Seatrial does not know. Keys are never ignored.",
		"Use the nearest known key that is named, or remove the line."},
	{MAN004, Manifest, "a value is not valid",
		"A value is of the wrong type, out of its range, or does not fit with another key.",
		"Mend the value at the line that is shown."},
	{MAN005, Manifest, "a key or value was removed",
		"The key or value existed once and was removed, because it could not do what it promised.",
		"Use what the message names instead."},
	{MAN006, Manifest, "p95_increase has nothing to compare against",
		"The load source carries no durations and no traffic profile is declared, so the threshold could never fire.",
		"Remove `p95_increase`, declare `load.traffic.profile`, use the source `otel`, or name a log format with durations in `load.source_config.format`."},
	{MAN007, Manifest, "this build cannot do that yet",
		"The key belongs to Seatrial's manifest, but this build cannot act on it. It is refused rather than ignored.",
		"Remove the key for now, or use a later build."},
	{TRF001, Dependency, "the traffic source cannot be read",
		"A path does not exist, a glob matches nothing, or a file cannot be opened or decompressed.",
		"Check the path; it is relative to the folder of the manifest."},
	{TRF002, Dependency, "nothing in the traffic source could be parsed",
		"Not one line or document was in a format that was tried.",
		"Name the format with `format`, by its name or as the format string of NGINX or Apache (docs/log-formats.md), or check that the file is what it should be."},
	{TRF003, Dependency, "the traffic profile cannot be used",
		"The profile is damaged, comes from the future, or has a version that this build does not know.",
		"Record it again: `seatrial traffic record --from FILE`."},
	{TRF004, Usage, "the log format is not read",
		"The format that was named is not known, or is a format string of NGINX or Apache that tells no request or holds what cannot be read.",
		"Name one of the formats that are listed, or leave the format out so that it is recognised by content."},
	{TRF020, Usage, "the question to a log server cannot be asked",
		"The URL, the query, the range of time or the credentials for Loki or VictoriaLogs are missing or contradict each other. Nothing was asked.",
		"Mend what is named; a URL looks like http://loki:3100, and a range is from and to, or since."},
	{TRF021, Dependency, "a log server refuses the question",
		"Loki or VictoriaLogs answered, and its answer cannot become traffic: it refuses the query or the credentials, or holds no log lines. Its own words are shown.",
		"Mend the query, the URL or the credentials; the same query can be tried with logcli."},
	{TRF022, Dependency, "a log server keeps entries back",
		"The server gives fewer entries at once than would be needed to read all of them. Nothing is left out silently, so the reading ended there.",
		"Narrow the query, for example to one of the streams, or raise max_entries_limit_per_query of the server."},
	{TRF023, Dependency, "a log server does not answer",
		"Loki or VictoriaLogs could not be reached, was too busy, or broke off its answers, and that did not change in several attempts.",
		"Check that the server runs and can be reached from here, then read again."},
}
