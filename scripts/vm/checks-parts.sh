. ./check.sh
exit 0
