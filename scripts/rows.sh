# Sourced by checks that run one program in many ways, each of which has to print the same. It keeps files in the folder $work.

rows=()

# row starts a way to run it: a label, then the command. As many as there are processors run at once.
row() {
	rows+=("$1")
	local out=$work/row.${#rows[@]}
	shift
	while (($(jobs -rp | wc -l) >= $(nproc))); do
		wait -n
	done
	{ "$@" >"$out" || rm "$out"; } &
}

# same waits for all rows, says which are as the first, and fails unless all are.
same() {
	local i out got reference failed=0
	wait
	for i in "${!rows[@]}"; do
		out=$work/row.$((i + 1)) got="did not run"
		[ ! -e "$out" ] || got=$(tr '\n' ' ' <"$out")
		[ "$i" != 0 ] || reference=$got
		if [ -e "$out" ] && [ "$got" = "$reference" ]; then
			echo "same  ${rows[i]}"
		else
			echo "FAIL  ${rows[i]}: $got"
			failed=1
		fi
	done
	echo "${#rows[@]} runs, reference $reference"
	return $failed
}
