! Heat diffusion on a square, in the oldest form of MPI for Fortran: mpif.h. Each rank has some columns, and
! exchanges one with each neighbour before each step. The first eigenfunction of the discrete Laplacian decays by the
! same factor in each step, so the result is known.
!
!   mpifort heat-mpif.f90 -o heat && mpiexec -n 4 ./heat
program heat
  implicit none
  include 'mpif.h'
  integer, parameter :: n = 127, steps = 200
  double precision, parameter :: pi = 3.14159265358979324d0, rate = 0.2d0
  double precision, allocatable :: old(:,:), new(:,:)
  double precision :: h, factor, worst
  integer :: ranks, me, first, last, left, right, step, i, j, ierr
  integer :: status(MPI_STATUS_SIZE)

  call MPI_INIT(ierr)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
  call MPI_COMM_RANK(MPI_COMM_WORLD, me, ierr)
  first = me * n / ranks + 1
  last = (me + 1) * n / ranks
  left = me - 1
  right = me + 1
  if (left < 0) left = MPI_PROC_NULL
  if (right == ranks) right = MPI_PROC_NULL

  h = 1d0 / (n + 1)
  allocate (old(0:n+1, first-1:last+1), new(0:n+1, first-1:last+1))
  old = 0
  do j = first, last
    do i = 1, n
      old(i, j) = sin(pi * i * h) * sin(pi * j * h)
    end do
  end do
  new = old

  do step = 1, steps
    call MPI_SENDRECV(old(0, last), n + 2, MPI_DOUBLE_PRECISION, right, 1, &
        old(0, first - 1), n + 2, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, status, ierr)
    if (left /= MPI_PROC_NULL .and. status(MPI_SOURCE) /= left) call MPI_ABORT(MPI_COMM_WORLD, 2, ierr)
    call MPI_SENDRECV(old(0, first), n + 2, MPI_DOUBLE_PRECISION, left, 2, &
        old(0, last + 1), n + 2, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    do j = first, last
      do i = 1, n
        new(i, j) = old(i, j) + rate * (old(i-1, j) + old(i+1, j) + old(i, j-1) + old(i, j+1) - 4 * old(i, j))
      end do
    end do
    old = new
  end do

  factor = (1 - 8 * rate * sin(pi * h / 2)**2)**steps
  worst = 0
  do j = first, last
    do i = 1, n
      worst = max(worst, abs(old(i, j) - factor * sin(pi * i * h) * sin(pi * j * h)))
    end do
  end do
  call MPI_ALLREDUCE(MPI_IN_PLACE, worst, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
  if (me == 0) print '(a, i0, a, es8.1)', 'heat with mpif.h: ', ranks, ' ranks, error ', worst
  call MPI_FINALIZE(ierr)
  if (.not. worst < 1d-12) error stop 'the result is wrong'
end program
