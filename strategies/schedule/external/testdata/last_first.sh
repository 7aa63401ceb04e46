# An order in one line: who came last goes first.
echo '{"hello": "last-first", "protocol": 1}'
while read -r question; do
	ids=$(echo "$question" | grep -o '"id": *[0-9]*' | grep -o '[0-9]*' | sort -rn | paste -sd, -)
	echo "{\"order\": [$ids]}"
done
