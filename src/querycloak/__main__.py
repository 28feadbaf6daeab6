"""`python -m querycloak` is `querycloak`."""

from querycloak.cli import main

main()
